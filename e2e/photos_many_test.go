package e2e

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/db/transfer"
	"animalstore/internal/testenv"
)

// manyPhotos creates a store with one photo for each pet. Most of them are small, and some
// have several parts.
func manyPhotos(t *testing.T, photos int) (file string) {
	t.Helper()
	file = newDatabase(t)
	store, err := sqlite.Open(t.Context(), file, sqlite.Options{NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	random := rand.NewChaCha8([32]byte{1})
	batches := func(yield func(db.Rows) bool) {
		const batch = 100
		for first := 0; first < photos; first += batch {
			rows := db.Rows{}
			if first == 0 {
				rows.Categories = []animalstore.Category{{ID: 1, Name: "dogs"}}
			}
			for i := range min(batch, photos-first) {
				rows.Pets = append(rows.Pets, animalstore.Pet{ID: int64(i + 1), Name: "Rex", CategoryID: 1, Status: animalstore.PetAvailable})
				image := make([]byte, 10_000+i*100)
				if i == 7 {
					image = make([]byte, 2*db.PartSize+1)
				}
				random.Read(image)
				rows.Photos = append(rows.Photos, db.NewPhoto{PetID: int64(i + 1), ContentType: "image/jpeg", Width: 40, Height: 30,
					Image: image, Thumbnail: image[:2000], At: animalstore.At(time.Now())})
			}
			if !yield(rows) {
				return
			}
		}
	}
	_, err = transfer.Load(t.Context(), store, batches, func(int) {})
	if err := errors.Join(err, store.Close()); err != nil {
		t.Fatal(err)
	}
	return file
}

// sumOfPhotos returns a checksum of all photos of a file with all their bytes.
func sumOfPhotos(t *testing.T, file string) string {
	t.Helper()
	source, err := sqlite.OpenSource(t.Context(), file, false)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	sum := sha256.New()
	for _, query := range []string{"SELECT id, pet_id, bytes, thumbnail_bytes FROM photos ORDER BY id", "SELECT photo_id, kind, part, data FROM photo_parts ORDER BY photo_id, kind, part"} {
		rows, err := source.Query(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		for rows.Next() {
			values, err := rows.Values()
			if err != nil {
				t.Fatal(err)
			}
			for _, v := range values {
				if data, ok := v.([]byte); ok {
					sum.Write(data)
				} else {
					fmt.Fprintln(sum, v)
				}
			}
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		rows.Close()
	}
	return fmt.Sprintf("%x", sum.Sum(nil))
}

// TestManyPhotos: a store with many photos is backed up, restored, moved to PostgreSQL and
// back, and checked, and none of its bytes changes.
func TestManyPhotos(t *testing.T) {
	testenv.OnlySoak(t, "fills a store of gigabytes")
	file := manyPhotos(t, 100_000)
	want := sumOfPhotos(t, file)
	dir := t.TempDir()
	backup, restored, back := filepath.Join(dir, "backup.db"), filepath.Join(dir, "restored.db"), filepath.Join(dir, "back.db")
	database := pgtest.Shared(t).NewDatabase(t, "")
	for _, args := range [][]string{
		{"db", "backup", backup, "--database", "sqlite:" + file},
		{"db", "restore", backup, "--database", "sqlite:" + restored},
		{"db", "move", "--from", "sqlite:" + restored, "--to", database},
		{"db", "check", "--database", database},
		{"db", "move", "--from", database, "--to", "sqlite:" + back},
		{"db", "check", "--database", "sqlite:" + back},
	} {
		if r := run(t, args...); r.code != 0 {
			t.Fatalf("%s: %+v", args, r)
		}
	}
	if got := sumOfPhotos(t, back); got != want {
		t.Errorf("the photos have the checksum %s in the end, want %s", got, want)
	}
}
