package e2e

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"image"
	_ "image/jpeg"
	"maps"
	"strings"
	"sync"
	"testing"

	"animalstore"
	goclient "animalstore/client"
	"animalstore/internal/photo"
	"animalstore/internal/photo/phototest"
	"animalstore/internal/testenv"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// uploader returns a client that sends each picture so many times at most.
func uploader(t testing.TB, s *server, key string, attempts int) *goclient.Client {
	t.Helper()
	c, err := goclient.New(s.url, key, goclient.WithMaxAttempts(attempts))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}

// noise returns a picture that doesn't compress well.
func noise(width, height int, seed byte) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	for i := range img.Pix {
		img.Pix[i] = byte(i*i>>6) ^ seed*31
		if i%4 == 3 {
			img.Pix[i] = 255
		}
	}
	return img
}

// acknowledgedPhoto is a photo as the server returned it, and what its image must be.
type acknowledgedPhoto struct {
	animalstore.Photo
	image [sha256.Size]byte
}

// photoLoad uploads pictures until it is stopped or its server ends.
type photoLoad struct {
	cancel    context.CancelFunc
	uploading sync.WaitGroup

	mu           sync.Mutex
	acknowledged map[int64]acknowledgedPhoto
}

func startPhotoLoad(t testing.TB, s *server, key string, seed int) *photoLoad {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	l := &photoLoad{cancel: cancel, acknowledged: map[int64]acknowledgedPhoto{}}
	c := uploader(t, s, key, 1)
	for worker := range 4 {
		picture := phototest.JPEG(noise(700+10*worker, 500, byte(seed*4+worker)))
		header, err := photo.Inspect(picture, "image/jpeg")
		if err != nil {
			t.Fatal(err)
		}
		kept, err := photo.Process(t.Context(), picture, header)
		if err != nil {
			t.Fatal(err)
		}
		image := sha256.Sum256(kept.Image)
		l.uploading.Go(func() {
			for ctx.Err() == nil {
				pet, err := c.CreatePet(ctx, animalstore.NewPet{Name: "Rex", CategoryID: 1})
				for n := 0; err == nil && n < animalstore.MaxPhotos; n++ {
					var added animalstore.Photo
					if added, err = c.AddPhoto(ctx, pet.ID, bytes.NewReader(picture)); err == nil {
						l.mu.Lock()
						l.acknowledged[added.ID] = acknowledgedPhoto{added, image}
						l.mu.Unlock()
					}
				}
			}
		})
	}
	return l
}

// soFar returns the photos that are acknowledged by now.
func (l *photoLoad) soFar() map[int64]acknowledgedPhoto {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.acknowledged)
}

func (l *photoLoad) stop() {
	l.cancel()
	l.uploading.Wait()
}

// brokenPhotos selects photos without their event or some of their bytes, and events and
// bytes without their photo, in a file where photos were only added.
const brokenPhotos = `
	SELECT 'photo ' || p.id || ' has no event' FROM photos p LEFT JOIN events e ON e.type = 16 AND e.subject_id = p.id WHERE e.id IS NULL UNION ALL
	SELECT 'event ' || e.id || ' is of a photo that was not stored' FROM events e LEFT JOIN photos p ON p.id = e.subject_id WHERE e.type = 16 AND p.id IS NULL UNION ALL
	SELECT 'photo ' || p.id || ' has not all bytes' FROM photos p WHERE bytes + thumbnail_bytes <> (SELECT coalesce(sum(length(data)), 0) FROM photo_parts WHERE photo_id = p.id) UNION ALL
	SELECT 'photo ' || photo_id || ' is bytes alone' FROM photo_parts LEFT JOIN photos p ON p.id = photo_id WHERE p.id IS NULL`

// checkPhotoFile fails the test unless the file of a killed server is intact, and each of
// its photos is there with its event.
func checkPhotoFile(t *testing.T, when, database string) {
	t.Helper()
	if got := integrity(t, database); got != "ok" {
		t.Fatalf("%s: the file is damaged: %s", when, got)
	}
	onCopy(t, database, func(conn *sqlite.Conn) error {
		return sqlitex.ExecuteTransient(conn, brokenPhotos, &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
			t.Errorf("%s: %s", when, stmt.ColumnText(0))
			return nil
		}})
	})
}

// missingPhotos returns the acknowledged photos that the server doesn't return as they were.
func missingPhotos(t *testing.T, c *goclient.Client, acknowledged map[int64]acknowledgedPhoto) (which []string) {
	t.Helper()
	for id, want := range acknowledged {
		got, err := c.GetPhoto(t.Context(), id)
		if err != nil || got != want.Photo {
			which = append(which, fmt.Sprintf("photo %d: got %+v, %v, want %+v", id, got, err, want.Photo))
			continue
		}
		full, err := c.GetImage(t.Context(), id)
		if err == nil {
			_, _, err = image.Decode(bytes.NewReader(full.Data))
		}
		if err != nil || sha256.Sum256(full.Data) != want.image {
			which = append(which, fmt.Sprintf("photo %d: got an image of %d bytes, %v, want the %d bytes that were made of the picture", id, len(full.Data), err, want.Bytes))
		}
	}
	return which
}

// TestKillUnderUploads: the server is killed while pictures are uploaded. Afterwards each
// acknowledged photo is whole, and every other one is there with its event or not at all.
func TestKillUnderUploads(t *testing.T) {
	t.Parallel()
	testenv.Slow(t)
	database := newDatabase(t)
	key := loadKey(t, database)
	all := map[int64]acknowledgedPhoto{}
	rounds := testenv.Count(3, 300)
	for round := range rounds {
		s := start(t, onDatabase(database))
		l := startPhotoLoad(t, s, key, round)
		testenv.Eventually(t, "some photos are acknowledged", func() bool { return len(l.soFar()) >= 1+round%10 })
		s.kill()
		l.stop()
		maps.Copy(all, l.acknowledged)
		checkPhotoFile(t, fmt.Sprint("round ", round), database)
	}
	s := start(t, onDatabase(database))
	if lost := missingPhotos(t, uploader(t, s, key, 5), all); len(lost) > 0 {
		t.Errorf("%d of %d acknowledged photos are lost:\n%s", len(lost), len(all), strings.Join(lost, "\n"))
	}
	s.stop()
	if r := run(t, "db", "check", "--database", "sqlite:"+database); r.code != 0 {
		t.Errorf("db check: %+v", r)
	}
	t.Logf("%d kills, %d photos acknowledged", rounds, len(all))
}
