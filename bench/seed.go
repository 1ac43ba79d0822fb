package main

import (
	"bufio"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/keys"
	"animalstore/internal/sample"
	service "animalstore/internal/server"

	sqlitedb "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

const rareStatus = animalstore.PetPending

// seedRows returns a store of n pets, the same each time, with ids from 1. Names and
// categories are those of a sample store. Its history would leave all pending pets at
// the end, so here 1 % pending, 20 % sold and 79 % available pets are scattered over
// the list.
func seedRows(n int) iter.Seq[db.Rows] {
	return func(yield func(db.Rows) bool) {
		store := sample.Store{Seed: 1, Pets: int64(n)}
		random := rand.New(rand.NewPCG(1, 2))
		part := db.Rows{Categories: store.Categories()}
		said, last := time.Now(), int64(0)
		for batch := range store.Batches() {
			part.Pets = batch.Pets
			part.Shift(last, 0)
			for i := range part.Pets {
				part.Pets[i].Status = randomStatus(random)
			}
			if !yield(part) {
				return
			}
			part.Categories, last = nil, last+int64(len(part.Pets))
			if time.Since(said) > time.Second {
				said = time.Now()
				progress("seeding: %d of %d pets", last, n)
			}
		}
	}
}

func randomStatus(random *rand.Rand) animalstore.PetStatus {
	switch p := random.IntN(100); {
	case p < 1:
		return rareStatus
	case p < 21:
		return animalstore.PetSold
	}
	return animalstore.PetAvailable
}

// openStore opens one of our databases to fill it. Its writes aren't durable at once:
// if the machine crashes, this run is lost anyway.
func (b *bench) openStore(url string) db.DB {
	return must(service.OpenDatabase(b.ctx, url, sqlite.Options{NoSync: true}))
}

// history is what a store accumulates in addition to pets: two events per pet, and one key per
// fifty. The events are from the year 2100; otherwise a store that is kept for a month
// would lose them.
const history = `
	INSERT INTO events (id, type, subject_id, pet_id, created_at, key_id, request_id, data)
		SELECT 2 * pets.id - 1 + type, type, pets.id, pets.id, 4102444800000 + pets.id, 1, 'bench',
		json_object('id', pets.id, 'name', name, 'categoryId', category_id, 'status', 'available')
		FROM pets CROSS JOIN (SELECT 0 AS type UNION ALL SELECT 1);
	INSERT INTO keys (id, name, plan, per_minute, per_day, permissions, environment, networks,
			created_at, expires_at, last_used, revoked_at, unbanned_at, suspended_at)
		SELECT id / 50, 'key', 'free', 60, 1000, 1, 'production', '', 1, 0, 0, 0, 0, 0 FROM pets WHERE id % 50 = 0;
	INSERT INTO key_secrets (hash, key_id, expires_at) SELECT randomblob(32), id, 0 FROM keys;`

// seed fills an empty database with pets.
func (b *bench) seed(url string, pets int, halved bool) {
	store := b.openStore(url)
	bulk := store.(db.Bulk)
	_, _, err := bulk.Reserve(b.ctx, int64(pets), 0)
	check(err)
	for part := range seedRows(pets) {
		if halved {
			halve(part.Pets)
		}
		check(bulk.Load(b.ctx, part))
	}
	check(store.Close())
}

// addHistory adds events to a SQLite file.
func (b *bench) addHistory(file string) {
	conn := must(sqlitedb.OpenConn(file, sqlitedb.OpenReadWrite))
	defer func() { check(conn.Close()) }()
	check(sqlitex.ExecuteScript(conn, history, nil))
}

// half is what the names of half of the pets in a halved store begin with.
const half = "The "

// halve makes the names of half of the pets begin with half. None of those has the rare
// status.
func halve(pets []animalstore.Pet) {
	for i := range pets {
		if p := &pets[i]; p.ID%2 == 0 {
			p.Name = half + p.Name
			if p.Status == rareStatus {
				p.Status = animalstore.PetAvailable
			}
		}
	}
}

// writeRows writes pets as lines of name, category and status between tabs, for peers,
// which fill their databases themselves.
func writeRows(w io.Writer, n int) error {
	out := bufio.NewWriter(w)
	for part := range seedRows(n) {
		for _, p := range part.Pets {
			fmt.Fprintf(out, "%s\t%d\t%s\n", p.Name, p.CategoryID, p.Status)
		}
	}
	return out.Flush()
}

// seededFile returns a SQLite file with pets, which is kept for later runs. A store with
// history is halved too.
func (b *bench) seededFile(pets int, withHistory bool) string {
	id := fingerprint(b.root, "internal/db/sqlite/schema*.sql", "internal/db/sqlite/sqlite.go", "internal/sample", "bench/seed.go")
	path := b.cached(fmt.Sprintf("pets-%d-%t-%s.db", pets, withHistory, id), func(part string) {
		b.seed("sqlite:"+part, pets, withHistory)
		if withHistory {
			b.addHistory(part)
		}
	})
	b.output("", "dd", "if="+path, "of=/dev/null", "bs=1M") // into the page cache: the disk isn't measured
	return path
}

// seededCopy copies a seeded file for one server and adds keys to it. It
// describes that server, and returns the URL of its database.
func (b *bench) seededCopy(name string, keys int) (s server, database string) {
	file := filepath.Join(b.work, name+".db")
	b.copyTree(file, b.seededFile(b.pets, false))
	s = b.withKeys(name, "sqlite:"+file, b.pets, keys)
	s.file = file
	return s, "sqlite:" + file
}

// withKeys adds keys that no load here can exhaust to a database. It describes the
// server that will use it.
func (b *bench) withKeys(name, database string, pets, count int) server {
	store := b.openStore(database)
	key := animalstore.NewKey{
		Name:        "bench",
		Plan:        animalstore.PlanEnterprise,
		Limits:      animalstore.Limits{PerMinute: 1_000_000_000, PerDay: 1_000_000_000},
		Permissions: animalstore.Read | animalstore.Write | animalstore.Admin, // for webhooks
		Environment: animalstore.Production,
	}
	secrets := make([]string, count)
	for i := range secrets {
		secrets[i] = keys.Mint(key.Environment)
		must(store.CreateKey(b.ctx, key, keys.Hash(secrets[i]), animalstore.Time{}))
	}
	check(store.Close())
	file := filepath.Join(b.work, name+".keys")
	check(os.WriteFile(file, []byte(strings.Join(secrets, "\n")+"\n"), 0o600))
	return server{name: name, api: ourAPI, key: secrets[0], keysFile: file, pets: pets}
}
