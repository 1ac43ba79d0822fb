//go:build linux

package e2e

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
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

// runBounded runs a command, which must succeed, in bounded memory and not silent for
// long. It returns what it printed.
func runBounded(t *testing.T, args ...string) (output string) {
	t.Helper()
	const maxMemory, maxSilence = 256 << 20, time.Minute
	cmd := exec.Command(binary, args...)
	cmd.Env, cmd.Dir = cleanEnv(), t.TempDir()
	out := &attentive{last: time.Now()}
	cmd.Stdout, cmd.Stderr = out, out
	began := time.Now()
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s: %v\n%s", args, err, out.all.String())
	}
	out.Write(nil)
	memory := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
	t.Logf("%s: %v, %d MiB, silent for %v", strings.Join(args[:2], " "), time.Since(began).Round(time.Millisecond), memory>>20, out.silent.Round(time.Millisecond))
	if memory > maxMemory || out.silent > maxSilence {
		t.Errorf("%s: took %d MiB and was silent for %v, want at most %d and %v", args, memory>>20, out.silent, maxMemory>>20, maxSilence)
	}
	return out.all.String()
}

// attentive is a writer that knows its longest pause.
type attentive struct {
	all    bytes.Buffer
	last   time.Time
	silent time.Duration
}

func (a *attentive) Write(p []byte) (int, error) {
	now := time.Now()
	a.silent = max(a.silent, now.Sub(a.last))
	a.last = now
	return a.all.Write(p)
}

// TestManyPhotos: a store with many photos is backed up, restored, moved to PostgreSQL and
// back, and checked, in bounded memory, and none of its bytes changes.
func TestManyPhotos(t *testing.T) {
	testenv.Slow(t)
	photos := testenv.Count(600, 100_000)
	file := manyPhotos(t, photos)
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%d photos: %d MB", photos, info.Size()/1e6)
	want := sumOfPhotos(t, file)
	dir := t.TempDir()
	backup, restored, back := filepath.Join(dir, "backup.db"), filepath.Join(dir, "restored.db"), filepath.Join(dir, "back.db")
	database := pgtest.Shared(t).NewDatabase(t, "")
	counted := map[int]string{600: " 600 photos (", 100_000: " 100,000 photos ("}[photos]
	check := func(url string) {
		t.Helper()
		if out := runBounded(t, "db", "check", "--database", url); !strings.Contains(out, counted) {
			t.Errorf("db check: got %s\nwant%s", out, counted)
		}
	}
	check("sqlite:" + file)
	runBounded(t, "db", "backup", backup, "--database", "sqlite:"+file)
	runBounded(t, "db", "restore", backup, "--database", "sqlite:"+restored)
	if got := sumOfPhotos(t, restored); got != want {
		t.Errorf("the restored photos have the checksum %s, want %s", got, want)
	}
	os.Remove(backup) // the disk may be small
	if out := runBounded(t, "db", "move", "--from", "sqlite:"+restored, "--to", database); !strings.Contains(out, "photos ") {
		t.Errorf("db move: got %s\nwant the number of photos", out)
	}
	os.Remove(restored)
	check(database)
	runBounded(t, "db", "move", "--from", database, "--to", "sqlite:"+back)
	check("sqlite:" + back)
	if got := sumOfPhotos(t, back); got != want {
		t.Errorf("the photos have the checksum %s after the moves, want %s", got, want)
	}
	for damage, says := range map[string]string{
		"UPDATE photo_parts SET data = zeroblob(length(data)) WHERE photo_id = 9 AND kind = 0;": "part 0 of photo 9 was changed",
		"PRAGMA foreign_keys = off; DELETE FROM photos WHERE id = 5;":                           "every part of an image belongs to a photo, but photo 5",
	} {
		query(t, back, damage)
		if r := run(t, "db", "check", "--database", "sqlite:"+back); r.code != 1 || !strings.Contains(r.stdout, says) {
			t.Errorf("%s\ngot %+v, want exit code 1 and %q", damage, r, says)
		}
	}
}
