//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"unsafe"

	"animalstore/internal/testenv"
)

// TestPowerCut removes the disk under load, with everything not yet written to it, like
// a power cut. Nothing acknowledged may be lost.
func TestPowerCut(t *testing.T) {
	testenv.OnlySoak(t, "mounts file systems")
	d := newDisk(t)
	database := filepath.Join(d.dir, "store.db")
	var key string
	var all *ledger
	var verified int64
	for cut := range 50 {
		fresh := cut%10 == 0
		if fresh { // a new file can be lost completely
			d.unmount(t)
			d.format(t)
			d.mount(t)
			all, verified = newLedger(), 0
		}
		s := start(t, onDatabase(database))
		if fresh {
			key = adminKey(t, database)
		}
		l := startLoad(t, s, key, 16, fmt.Sprint("cut ", cut), 100)
		// Cuts at different moments hit different states of the log.
		enough := int64(1 + cut*997%1500)
		testenv.Eventually(t, "the load is on", func() bool { return l.acknowledged.Load() >= enough })
		// Only responses before the cut count. A machine without power responds to
		// nothing, while this one keeps running, and ext4 has been seen to report
		// success for an fsync that was interrupted by the cut.
		pets := l.callTime()
		d.cut(t)
		// The server must not keep running without its disk.
		if code := s.wait(); code != 1 {
			t.Errorf("cut %d: the server ended with exit code %d, want 1.\n%s", cut, code, s.output())
		}
		l.stop()
		for _, p := range pets {
			if err := all.add(p); err != nil {
				t.Errorf("cut %d: %v", cut, err)
			}
		}
		d.unmount(t)
		d.mount(t)

		if got := integrity(t, database); got != "ok" {
			t.Fatalf("cut %d: the file is damaged: %s", cut, got)
		}
		wantEvents(t, database)
		s = start(t, onDatabase(database))
		stored := newClient(t, s, key).allPets(t, verified)
		if n, which := all.missing(stored, verified); n > 0 {
			t.Fatalf("cut %d: %d of %d acknowledged pets are lost, such as %.100s", cut, n, len(pets), which[0])
		}
		for id := range stored {
			verified = max(verified, id)
		}
		s.stop()
	}
}

// disk is an ext4 file system in a file.
type disk struct {
	image string
	dir   string
}

func newDisk(t *testing.T) *disk {
	t.Helper()
	for _, program := range []string{"mkfs.ext4", "mount"} {
		testenv.Need(t, program)
	}
	d := &disk{image: filepath.Join(t.TempDir(), "disk"), dir: t.TempDir()}
	d.format(t)
	if out, err := d.tryMount(); err != nil {
		testenv.Missing(t, "a power cut needs an ext4 file system in a file, which this machine does not mount: %v: %s", err, out)
	}
	t.Cleanup(func() { syscall.Unmount(d.dir, 0) })
	return d
}

func (d *disk) format(t *testing.T) {
	t.Helper()
	mustWrite(t, d.image, "", 0o600)
	if err := os.Truncate(d.image, 256<<20); err != nil {
		t.Fatal(err)
	}
	output(t, exec.Command("mkfs.ext4", "-q", "-F", d.image))
}

func (d *disk) tryMount() ([]byte, error) {
	return exec.Command("mount", "-t", "ext4", "-o", "loop", d.image, d.dir).CombinedOutput()
}

func (d *disk) mount(t *testing.T) {
	t.Helper()
	if out, err := d.tryMount(); err != nil {
		t.Fatalf("mount: %v\n%s", err, out)
	}
}

func (d *disk) unmount(t *testing.T) {
	t.Helper()
	testenv.Eventually(t, "the disk is no longer in use", func() bool {
		err := syscall.Unmount(d.dir, 0)
		if err != nil && !errors.Is(err, syscall.EBUSY) {
			t.Fatalf("unmount: %v", err)
		}
		return err == nil
	})
}

// cut stops all writing to the disk at once, including the file system's journal:
// EXT4_IOC_SHUTDOWN with EXT4_GOING_FLAGS_NOLOGFLUSH.
func (d *disk) cut(t *testing.T) {
	t.Helper()
	f, err := os.Open(d.dir)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	const shutdown, noLogFlush = 0x8004587d, 2
	flags := uint32(noLogFlush)
	if _, _, errno := syscall.Syscall(syscall.SYS_IOCTL, f.Fd(), shutdown, uintptr(unsafe.Pointer(&flags))); errno != 0 {
		testenv.Missing(t, "this kernel's ext4 cannot be cut off: %v", errno)
	}
}
