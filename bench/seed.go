package main

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
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

// seed makes a database of n animals with the ids 1 to n, the same each time.
// It goes past the server, which would take minutes.
func seed(ctx context.Context, path string, n int) error {
	db, err := sqlite.Open(ctx, path, sqlite.Options{}) // makes the tables
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
	defer conn.Close()
	// Nothing here has to survive a crash, the whole file would be made anew.
	for _, pragma := range []string{"journal_mode = OFF", "synchronous = OFF", "cache_size = -200000", "locking_mode = EXCLUSIVE"} {
		if err := sqlitex.ExecuteTransient(conn, "PRAGMA "+pragma, nil); err != nil {
			return err
		}
	}
	if err := insertPets(ctx, conn, n); err != nil {
		return fmt.Errorf("seed: %w", err)
	}
	return nil
}

func insertPets(ctx context.Context, conn *zombiezen.Conn, n int) (err error) {
	defer sqlitex.Transaction(conn)(&err)
	stmt, err := conn.Prepare("INSERT INTO pets (name, category_id, status) VALUES (?, ?, ?)")
	if err != nil {
		return err
	}
	said := time.Now()
	random := rand.New(rand.NewPCG(1, 2))
	for i := range n {
		stmt.BindText(1, petName(random))
		stmt.BindInt64(2, 1+random.Int64N(50))
		stmt.BindInt64(3, petStatus(random))
		if _, err := stmt.Step(); err != nil {
			return err
		}
		if err := stmt.Reset(); err != nil {
			return err
		}
		if i%1000 == 0 {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if time.Since(said) > time.Second {
				said = time.Now()
				say("seeding: %d of %d animals", i, n)
			}
		}
	}
	return nil
}

// petStatus is the stored number of a status: 79 % available, 20 % sold, 1 %
// pending.
func petStatus(random *rand.Rand) int64 {
	switch p := random.IntN(100); {
	case p < 1:
		return 1
	case p < 21:
		return 2
	}
	return 0
}

var (
	firstNames = strings.Fields("Ada Bruno Cleo Dasher Ella Fidget Ginger Hazel Iggy Juno Kiki Luna Milo Nala Otto Pepper Quincy Rex Sadie Tango Uma Vito Waffles Xena Yoshi Zoë")
	kinds      = strings.Fields("cat dog rabbit parrot gecko hamster tortoise ferret canary iguana axolotl chinchilla")
)

func petName(random *rand.Rand) string {
	return firstNames[random.IntN(len(firstNames))] + " the " + kinds[random.IntN(len(kinds))] + " " + strconv.Itoa(random.IntN(100_000))
}

// cursorURI is a page of the list that starts below an id, as the server itself
// would link to it. Walking to a random place would take hours.
func cursorURI(below int64, status animalstore.PetStatus) string {
	filters := ""
	if status != "" {
		filters = "status=" + string(status)
	}
	uri := "/v1/pets?cursor=" + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, "/v1/pets|%d|%s", below, filters))
	if filters != "" {
		uri += "&" + filters
	}
	return uri
}

// checkCursors compares cursorURI with what the server links to.
func checkCursors(s *server) error {
	for _, status := range []animalstore.PetStatus{"", rare} {
		uri := "/v1/pets"
		if status != "" {
			uri += "?status=" + string(status)
		}
		a, err := s.ask("GET", uri, "")
		if err != nil {
			return err
		}
		var pets []animalstore.Pet
		if err := json.Unmarshal([]byte(a.Body), &pets); err != nil || len(pets) == 0 {
			return fmt.Errorf("%s: no animals in %q (%v)", a, a.Body, err)
		}
		next := "<" + cursorURI(pets[len(pets)-1].ID, status) + `>; rel="next"`
		if !strings.Contains(a.field("Link"), next) {
			return fmt.Errorf("cursors have another form than this benchmark makes: bring cursorURI up to date\n got %s\nwant %s", a.field("Link"), next)
		}
	}
	return nil
}
