package sqlite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/db/transfer"
	"animalstore/internal/testenv"
)

// TestFlippedBytesInALargeStore counts the damage that is missed in large files, which
// the check at startup skips. "db check" must find everything that would be served
// wrongly.
func TestFlippedBytesInALargeStore(t *testing.T) {
	testenv.OnlySoak(t, "reads 100,000 pets again and again")
	const pets, flips = 100_000, 150
	path := filepath.Join(t.TempDir(), "store.db")
	want := largeStore(t, path, pets)
	content := readFile(t, path)
	if len(content) <= startCheckSize {
		t.Fatalf("the file has %d bytes, so it is checked at startup", len(content))
	}
	random := rand.New(rand.NewPCG(3, 4))
	file := filepath.Join(t.TempDir(), "damaged.db")
	refused, stopped, silent, found, foundOfSilent := 0, 0, 0, 0, 0
	for range flips {
		damaged := append([]byte(nil), content...)
		at, bit := random.IntN(len(damaged)), byte(1)<<random.IntN(8)
		damaged[at] ^= bit
		write := func() {
			for _, name := range append(Files{}.Companions(file), file) {
				os.Remove(name)
			}
			if err := os.WriteFile(file, damaged, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write()
		noticed := checkFinds(t, file)
		if noticed {
			found++
		}
		write()
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
			if noticed {
				foundOfSilent++
			} else {
				t.Errorf("bit %#x of byte %d flipped: %s, and db check finds nothing", bit, at, wrong)
			}
		}
	}
	t.Logf("%d flips in %d bytes: %d refused at start, %d stopped by a read, %d served wrongly; db check finds %d, among them %d of those served wrongly",
		flips, len(content), refused, stopped, silent, found, foundOfSilent)
}

// largeStore creates a store and returns its pets by id, beginning at 1.
func largeStore(t *testing.T, path string, pets int64) []animalstore.Pet {
	t.Helper()
	d := mustOpen(t, path, Options{Serve: true, NoSync: true})
	if _, _, err := d.Reserve(t.Context(), pets, 0); err != nil {
		t.Fatal(err)
	}
	rows := db.Rows{}
	for i := range int64(7) {
		rows.Categories = append(rows.Categories, animalstore.Category{ID: i, Name: fmt.Sprint("category ", i)})
	}
	for i := range pets {
		rows.Pets = append(rows.Pets, animalstore.Pet{ID: i + 1, Name: fmt.Sprintf("Rex the %dth", i), CategoryID: i % 7, Status: animalstore.PetStatuses[i%3]})
	}
	if err := d.Load(t.Context(), rows); err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	return rows.Pets
}

// checkFinds reports whether "db check" finds the file damaged.
func checkFinds(t *testing.T, file string) bool {
	t.Helper()
	source, err := OpenSource(t.Context(), file, false)
	if err != nil {
		return true
	}
	defer source.Close()
	_, failed, err := transfer.Check(t.Context(), source, quiet{})
	return failed > 0 || err != nil
}

type quiet struct{}

func (quiet) Checking(string)          {}
func (quiet) Checked(transfer.Finding) {}

// readsWrong reads every pet by its id and in every list, and describes the first that
// is wrong.
func readsWrong(d *DB, want []animalstore.Pet) string {
	ctx := context.Background()
	queries := []db.PetQuery{{}}
	for _, status := range animalstore.PetStatuses {
		queries = append(queries, db.PetQuery{Status: status})
	}
	for i := range int64(7) {
		queries = append(queries, db.PetQuery{CategoryID: &i})
	}
	matches := func(q db.PetQuery, p animalstore.Pet) bool {
		return (q.Status == "" || p.Status == q.Status) && (q.CategoryID == nil || p.CategoryID == *q.CategoryID)
	}
	for _, q := range queries {
		q.Limit = 1000
		next := len(want) - 1 // lists begin with the newest
		for {
			page, err := d.Pets(ctx, q)
			if err != nil {
				return fmt.Sprintf("%+v: %v", q, err)
			}
			for _, p := range page {
				for next >= 0 && !matches(q, want[next]) {
					next--
				}
				if next < 0 || want[next] != p {
					return fmt.Sprintf("%+v has %+v", q, p)
				}
				next--
			}
			if len(page) < q.Limit {
				break
			}
			q.Before = page[len(page)-1].ID
		}
		for ; next >= 0; next-- {
			if matches(q, want[next]) {
				return fmt.Sprintf("%+v is without %+v", q, want[next])
			}
		}
	}
	for _, p := range want {
		if got, err := d.Pet(ctx, p.ID); err != nil || got != p {
			return fmt.Sprintf("pet %d is %+v, %v", p.ID, got, err)
		}
	}
	return ""
}
