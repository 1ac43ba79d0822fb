package sqlite

import (
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
	var want []animalstore.Pet
	for i := range 300 {
		pet, _, err := d.CreatePet(t.Context(), animalstore.NewPet{Name: fmt.Sprintf("Rex the %dth", i), CategoryID: int64(i % 7), Status: animalstore.PetStatuses[i%3]}, nil)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, pet)
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
		wrong := readsWrong(d, want)
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
