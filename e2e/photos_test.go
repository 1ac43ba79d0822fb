package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"image/color"
	"os"
	"strings"
	"sync"
	"testing"

	"animalstore"
	"animalstore/internal/photo/phototest"
	"animalstore/internal/testenv"
)

// TestUploadMemory: the memory of a server that gets the most expensive pictures and bad
// ones grows by at most 320 MiB.
func TestUploadMemory(t *testing.T) {
	testenv.Slow(t)
	database := newDatabase(t)
	key := loadKey(t, database)
	s := start(t, onDatabase(database))
	c := uploader(t, s, key, 1)
	pet, err := c.CreatePet(t.Context(), animalstore.NewPet{Name: "Rex", CategoryID: 1})
	if err != nil {
		t.Fatal(err)
	}
	plain := newClient(t, s, key)
	before := s.peakMemory(t)
	for _, u := range phototest.Bad(testenv.Count(70, 2000), 5) {
		res := plain.do(t, "POST", fmt.Sprintf("/v1/pets/%d/photos", pet.ID), string(u.Data), "Content-Type", u.ContentType)
		if res.status != 400 || !strings.Contains(res.body, "invalid_image") {
			t.Errorf("%s: got %d %s, want 400 invalid_image", u.Name, res.status, res.body)
		}
	}
	var uploading sync.WaitGroup
	for _, picture := range [][]byte{phototest.Progressive(6000, 4000, 10), phototest.WebP(4700, 4000, color.NRGBA{1, 2, 3, 255}), phototest.Progressive(6000, 4000, 5)} {
		uploading.Go(func() {
			// A busy machine may be too slow for these, and its disk too. They cost memory
			// all the same.
			_, err := c.AddPhoto(t.Context(), pet.ID, bytes.NewReader(picture))
			var coded *animalstore.Error
			if err != nil && (!errors.As(err, &coded) || coded.Code != animalstore.Overloaded && coded.Code != animalstore.Unavailable) {
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
