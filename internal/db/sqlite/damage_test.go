package sqlite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/testenv"
)

// TestFlippedBytes flips one bit of a file at a time. A server must refuse the file, stop
// when it reads the damage, or serve the pets as they were.
func TestFlippedBytes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "store.db")
	d := mustOpen(t, path, Options{Serve: true, NoSync: true})
	want := map[int64]animalstore.Pet{}
	for i := range 300 {
		pet, _, err := d.CreatePet(t.Context(), animalstore.NewPet{Name: fmt.Sprintf("Rex the %dth", i), CategoryID: int64(i % 7), Status: animalstore.PetStatuses[i%3]}, nil)
		if err != nil {
			t.Fatal(err)
		}
		want[pet.ID] = pet
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	content := readFile(t, path)
	flips := testenv.Count(60, 3000)
	random := rand.New(rand.NewPCG(1, 2))
	refused, stopped, silent := 0, 0, 0
	for range flips {
		damaged := append([]byte(nil), content...)
		at, bit := random.IntN(len(damaged)), byte(1)<<random.IntN(8)
		damaged[at] ^= bit
		file := filepath.Join(t.TempDir(), "damaged.db")
		if err := os.WriteFile(file, damaged, 0o600); err != nil {
			t.Fatal(err)
		}
		failed := false
		d, err := Open(t.Context(), file, Options{Serve: true, Fatal: func(error) { failed = true }, NoSync: true})
		if err != nil {
			refused++
			continue
		}
		wrong := servesWrong(d, want)
		d.Close()
		switch {
		case failed:
			stopped++
		case wrong != "":
			silent++
			t.Errorf("bit %#x of byte %d flipped: %s", bit, at, wrong)
		}
	}
	t.Logf("%d flips: %d refused at start, %d stopped by a read, %d served wrongly", flips, refused, stopped, silent)
	if refused == 0 {
		t.Error("no flip was noticed: the test checks nothing")
	}
}

// servesWrong reads every pet in every way and describes the first that is wrong.
func servesWrong(d *DB, want map[int64]animalstore.Pet) string {
	ctx := context.Background()
	for id, pet := range want {
		if got, err := d.Pet(ctx, id); err != nil || got != pet {
			return fmt.Sprintf("pet %d is %+v, %v", id, got, err)
		}
	}
	queries := []db.PetQuery{{}}
	for _, status := range animalstore.PetStatuses {
		queries = append(queries, db.PetQuery{Status: status})
	}
	for i := range int64(7) {
		queries = append(queries, db.PetQuery{CategoryID: &i})
	}
	for _, q := range queries {
		q.Limit = 1000
		n := 0
		pets, err := d.Pets(ctx, q)
		for _, p := range want {
			if (q.Status == "" || p.Status == q.Status) && (q.CategoryID == nil || p.CategoryID == *q.CategoryID) {
				n++
			}
		}
		if err != nil || len(pets) != n {
			return fmt.Sprintf("%+v has %d pets, %v, want %d", q, len(pets), err, n)
		}
		for _, p := range pets {
			if want[p.ID] != p {
				return fmt.Sprintf("%+v has %+v, want %+v", q, p, want[p.ID])
			}
		}
	}
	return ""
}

// TestDamagedRowStops: a row that breaks the rules isn't served.
func TestDamagedRowStops(t *testing.T) {
	for name, sql := range map[string]string{
		"status":       "PRAGMA ignore_check_constraints = ON; UPDATE pets SET status = 7",
		"name":         "UPDATE pets SET name = CAST(x'ff' AS TEXT)",
		"without name": "UPDATE pets SET name = ''",
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "store.db")
			var failed error
			d := mustOpen(t, path, Options{Serve: true, Fatal: func(err error) { failed = err }})
			pet, _, err := d.CreatePet(t.Context(), animalstore.NewPet{Name: "Rex", CategoryID: 1}, nil)
			if err != nil {
				t.Fatal(err)
			}
			script(t, path, sql)
			if got, err := d.Pet(t.Context(), pet.ID); err == nil {
				t.Errorf("got %+v, want an error", got)
			}
			if got, err := d.Pets(t.Context(), db.PetQuery{Limit: 10}); err == nil {
				t.Errorf("got %+v, want an error", got)
			}
			if failed == nil || !strings.Contains(failed.Error(), "animalstore db check") {
				t.Errorf("Fatal got %v, want what to do", failed)
			}
		})
	}
}
