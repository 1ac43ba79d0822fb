package main

import (
	"bufio"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"animalstore"
	"animalstore/internal/db/sqlite"

	zombiezen "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// rare is the status that one animal in a hundred has.
const rare = animalstore.PetPending

// animal is one that is seeded.
type animal struct {
	name     string
	category int64
	status   animalstore.PetStatus
}

// animals are n of them, the same each time: 79 % available, 20 % sold, 1 %
// pending. It tells the person who waits how far it has come.
func animals(n int) iter.Seq[animal] {
	return func(yield func(animal) bool) {
		random := rand.New(rand.NewPCG(1, 2))
		said := time.Now()
		for i := range n {
			a := animal{petName(random), 1 + random.Int64N(50), animalstore.PetAvailable}
			switch p := random.IntN(100); {
			case p < 1:
				a.status = animalstore.PetPending
			case p < 21:
				a.status = animalstore.PetSold
			}
			if !yield(a) {
				return
			}
			if i%1000 == 0 && time.Since(said) > time.Second {
				said = time.Now()
				say("seeding: %d of %d animals", i, n)
			}
		}
	}
}

// writeAnimals writes animals as lines of name, category and status between
// tabs, for what is filled by another program.
func writeAnimals(w io.Writer, n int, status func(animalstore.PetStatus) string) error {
	out := bufio.NewWriter(w)
	for a := range animals(n) {
		fmt.Fprintf(out, "%s\t%d\t%s\n", a.name, a.category, status(a.status))
	}
	return out.Flush()
}

func inWords(s animalstore.PetStatus) string { return string(s) }

// seeded returns a database with that many animals and what more adds to it,
// which kind names. It is kept for the next run as long as the tables stay the
// same.
func seeded(ctx context.Context, o options, work, kind string, n int, more ...func(path string) error) (string, error) {
	tables, err := schemaID(ctx, filepath.Join(work, "empty.db"))
	if err != nil {
		return "", err
	}
	path, err := o.cached(fmt.Sprintf("%s-%d-%s.db", kind, n, tables), func(part string) error {
		if err := seed(ctx, part, n); err != nil {
			return err
		}
		for _, add := range more {
			if err := add(part); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	return path, warm(path)
}

// seed makes a database of n animals with the ids 1 to n, the same each time.
// It goes past the server, which would take minutes.
func seed(ctx context.Context, path string, n int) error {
	err := inBulk(ctx, path, func(conn *zombiezen.Conn) error {
		stmt, err := conn.Prepare("INSERT INTO pets (name, category_id, status) VALUES (?, ?, ?)")
		if err != nil {
			return err
		}
		for a := range animals(n) {
			stmt.BindText(1, a.name)
			stmt.BindInt64(2, a.category)
			stmt.BindInt64(3, int64(slices.Index(statuses, a.status)))
			if _, err := stmt.Step(); err != nil {
				return err
			}
			if err := errors.Join(stmt.Reset(), ctx.Err()); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	return nil
}

// statuses are in the order of the numbers they are stored as.
var statuses = []animalstore.PetStatus{animalstore.PetAvailable, animalstore.PetPending, animalstore.PetSold}

// inBulk makes the tables where there are none and lets write fill them in one
// transaction. Nothing of it has to survive a crash: the whole file would be
// made anew.
func inBulk(ctx context.Context, path string, write func(conn *zombiezen.Conn) error) (err error) {
	db, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return err
	}
	if err := db.Close(); err != nil {
		return err
	}
	conn, err := zombiezen.OpenConn(path, zombiezen.OpenReadWrite)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	for _, pragma := range []string{"journal_mode = OFF", "synchronous = OFF", "cache_size = -200000", "locking_mode = EXCLUSIVE"} {
		if err := sqlitex.ExecuteTransient(conn, "PRAGMA "+pragma, nil); err != nil {
			return err
		}
	}
	defer sqlitex.Transaction(conn)(&err)
	return write(conn)
}

var (
	firstNames = strings.Fields("Ada Bruno Cleo Dasher Ella Fidget Ginger Hazel Iggy Juno Kiki Luna Milo Nala Otto Pepper Quincy Rex Sadie Tango Uma Vito Waffles Xena Yoshi Zoë")
	kinds      = strings.Fields("cat dog rabbit parrot gecko hamster tortoise ferret canary iguana axolotl chinchilla")
)

func petName(random *rand.Rand) string {
	return firstNames[random.IntN(len(firstNames))] + " the " + kinds[random.IntN(len(kinds))] + " " + strconv.Itoa(random.IntN(100_000))
}

// schemaID tells one set of tables from another.
func schemaID(ctx context.Context, path string) (string, error) {
	db, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return "", err
	}
	if err := db.Close(); err != nil {
		return "", err
	}
	conn, err := zombiezen.OpenConn(path, zombiezen.OpenReadOnly)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	sum := sha256.New()
	err = sqlitex.ExecuteTransient(conn, "SELECT sql FROM sqlite_schema ORDER BY rowid", &sqlitex.ExecOptions{
		ResultFunc: func(stmt *zombiezen.Stmt) error {
			fmt.Fprintln(sum, stmt.ColumnText(0))
			return nil
		},
	})
	return fmt.Sprintf("%x", sum.Sum(nil))[:12], err
}
