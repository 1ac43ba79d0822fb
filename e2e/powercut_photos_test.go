//go:build linux

package e2e

import (
	"fmt"
	"path/filepath"
	"testing"

	"animalstore/internal/testenv"
)

// TestPowerCutUnderUploads is [TestPowerCut] while pictures are uploaded.
func TestPowerCutUnderUploads(t *testing.T) {
	testenv.OnlySoak(t, "mounts file systems")
	t.Run("as released", func(t *testing.T) {
		const cuts = 30
		acknowledged, lost := cutPowerUnderUploads(t, cuts)
		if t.Logf("%d cuts, %d photos acknowledged, %d lost", cuts, acknowledged, lost); lost > 0 {
			t.Errorf("%d of %d acknowledged photos are lost", lost, acknowledged)
		}
	})
	t.Run("built not to wait", func(t *testing.T) {
		const cuts = 5
		acknowledged, lost := cutPowerUnderUploads(t, cuts, withBinary(unsafeBinary(t)))
		if t.Logf("%d cuts, %d photos acknowledged, %d lost", cuts, acknowledged, lost); lost == 0 {
			t.Errorf("a server with synchronous=NORMAL has lost none of %d acknowledged photos: this isn't a power cut", acknowledged)
		}
	})
}

// cutPowerUnderUploads cuts the power a number of times, each time on a new disk, and counts
// what is lost.
func cutPowerUnderUploads(t *testing.T, cuts int, opts ...option) (acknowledged, lost int) {
	t.Helper()
	d := newDisk(t)
	database := filepath.Join(d.dir, "store.db")
	for cut := range cuts {
		d.unmount(t)
		d.format(t)
		d.mount(t)
		s := start(t, append(opts, onDatabase(database))...)
		key := loadKey(t, database)
		l := startPhotoLoad(t, s, key, cut)
		// Cuts at different moments hit different states of the log.
		enough := 1 + cut*7%23
		testenv.Eventually(t, "some photos are acknowledged", func() bool { return len(l.soFar()) >= enough })
		photos := l.soFar() // only these: see cutPower
		d.cut(t)
		testenv.Eventually(t, "the server notices", s.ended)
		l.stop()
		d.unmount(t)
		d.mount(t)
		checkPhotoFile(t, fmt.Sprint("cut ", cut), database)
		s = start(t, append(opts, onDatabase(database))...)
		which := missingPhotos(t, uploader(t, s, key, 5), photos)
		if len(which) > 0 {
			t.Logf("cut %d: %d of %d acknowledged photos are lost, such as %s", cut, len(which), len(photos), which[0])
		}
		acknowledged += len(photos)
		lost += len(which)
		s.stop()
	}
	return acknowledged, lost
}
