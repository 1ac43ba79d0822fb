package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/color"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/photo/phototest"
	"animalstore/internal/testenv"
)

// TestReadsBesideUploads: while one key uploads large pictures over 16 connections, the
// pages of another key come quickly. The benchmark has the percentile; this bound leaves
// room for a busy machine.
func TestReadsBesideUploads(t *testing.T) {
	testenv.Slow(t)
	database := newDatabase(t)
	reader, busy := loadKey(t, database), loadKey(t, database)
	s := start(t, onDatabase(database))
	c := uploader(t, s, busy, 1)
	picture := phototest.JPEG(phototest.Drawing(4000, 3000))
	ctx, cancel := context.WithCancel(t.Context())
	var uploading sync.WaitGroup
	defer uploading.Wait()
	defer cancel()
	stored := make(chan error, 1000)
	for range 16 {
		pet, err := c.CreatePet(ctx, animalstore.NewPet{Name: "Rex", CategoryID: 1})
		if err != nil {
			t.Fatal(err)
		}
		uploading.Go(func() {
			for n := 0; n < animalstore.MaxPhotos && ctx.Err() == nil; n++ {
				_, err := c.AddPhoto(ctx, pet.ID, bytes.NewReader(picture))
				stored <- err
			}
		})
	}
	<-stored // they are in progress
	var took []time.Duration
	pages := newClient(t, s, reader)
	for end := time.Now().Add(4 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		began := time.Now()
		if got := pages.get(t, "/v1/pets"); got.status != 200 {
			t.Fatalf("got %v", got)
		}
		took = append(took, time.Since(began))
	}
	uploads := len(stored)
	slices.Sort(took)
	p50, p99 := took[len(took)/2], took[len(took)*99/100]
	t.Logf("%d pages beside %d uploads: p50 %v, p99 %v", len(took), uploads, p50, p99)
	if p50 > 150*time.Millisecond || p99 > time.Second {
		t.Errorf("p50 %v and p99 %v beside %d uploads, want at most 150 ms and 1 s", p50, p99, uploads)
	}
	for range len(stored) {
		var refused *animalstore.Error // a busy machine may be too slow
		if err := <-stored; err != nil && (!errors.As(err, &refused) || refused.Code != animalstore.Overloaded) {
			t.Errorf("an upload failed: %v", err)
		}
	}
}

// TestUploadMemory: the memory of a server that gets the most expensive pictures and bad
// ones grows by at most 320 MiB.
func TestUploadMemory(t *testing.T) {
	testenv.Slow(t)
	database := newDatabase(t)
	key := loadKey(t, database)
	s := start(t, onDatabase(database))
	c := uploader(t, s, key, 20)
	pet, err := c.CreatePet(t.Context(), animalstore.NewPet{Name: "Rex", CategoryID: 1})
	if err != nil {
		t.Fatal(err)
	}
	before := s.peakMemory(t)
	for _, u := range phototest.Bad(testenv.Count(70, 2000), 5) {
		if _, err := c.AddPhoto(t.Context(), pet.ID, bytes.NewReader(u.Data)); err == nil && !strings.Contains(u.Name, " as ") {
			t.Errorf("%s was accepted", u.Name)
		}
	}
	var uploading sync.WaitGroup
	for _, picture := range [][]byte{phototest.Progressive(6000, 4000, 10), phototest.WebP(4700, 4000, color.NRGBA{1, 2, 3, 255}), phototest.Progressive(6000, 4000, 5)} {
		uploading.Go(func() {
			if _, err := c.AddPhoto(t.Context(), pet.ID, bytes.NewReader(picture)); err != nil {
				t.Error(err)
			}
		})
	}
	uploading.Wait()
	if grown := s.peakMemory(t) - before; grown > 320<<20 {
		t.Errorf("the server took %d MiB more, want at most 320", grown>>20)
	} else {
		t.Logf("%d MiB more", grown>>20)
	}
}

// peakMemory returns the most memory that the process has had.
func (s *server) peakMemory(t testing.TB) int64 {
	t.Helper()
	var kib int64
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid)) // only Linux has it
	for line := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			fmt.Sscan(rest, &kib)
		}
	}
	if kib == 0 {
		testenv.Missing(t, "this system doesn't tell how much memory a process has had")
	}
	return kib << 10
}
