//go:build unix

package transfer_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"animalstore/internal/db"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/db/transfer"
)

type noProgress struct{}

func (noProgress) Copied(int64, int64)      {}
func (noProgress) Checking(string)          {}
func (noProgress) Checked(transfer.Finding) {}

// TestSeal: a backup with one flipped bit, anywhere, isn't restored, nor is one with bytes
// missing or added at its end. One without a seal, from another tool, is. A refused restore
// leaves no files behind.
func TestSeal(t *testing.T) {
	url := newFile(t)
	withStore(t, url, func(store db.DB) { oddStore(t, store) })
	dir := t.TempDir()
	file := filepath.Join(dir, "backup.db")
	made := must[transfer.Copied](t)(transfer.Backup(t.Context(), sqlite.Files{}, url[len("sqlite:"):], file, noProgress{}))
	good := must[[]byte](t)(os.ReadFile(file))
	plain := good[:made.Size]
	restore := func(content []byte) (transfer.Copied, error) {
		t.Helper()
		backup, store := filepath.Join(t.TempDir(), "backup.db"), filepath.Join(t.TempDir(), "store.db")
		if err := os.WriteFile(backup, content, 0o600); err != nil {
			t.Fatal(err)
		}
		copied, err := transfer.Restore(t.Context(), sqlite.Files{}, transfer.Restoration{Backup: backup, Store: store}, noProgress{})
		left := append(must[[]string](t)(filepath.Glob(backup+"?*")), must[[]string](t)(filepath.Glob(store+"?*"))...)
		if len(left) > 0 {
			t.Errorf("left over: %q", left)
		}
		return copied, err
	}
	if got, err := restore(good); err != nil || !got.Sealed {
		t.Errorf("as it was made: got %+v, %v, want it restored", got, err)
	}
	if got, err := restore(plain); err != nil || got.Sealed {
		t.Errorf("without a seal: got %+v, %v, want it restored", got, err)
	}
	for i := range 100 {
		flipped := bytes.Clone(good)
		flipped[i*len(plain)/100+i] ^= 1 << (i % 8)
		if _, err := restore(flipped); !errors.Is(err, transfer.ErrBroken) {
			t.Errorf("with a bit flipped at %d %%: got %v, want it refused", i, err)
		}
	}
	if _, err := restore(append(bytes.Clone(plain[:len(plain)-4096]), good[made.Size:]...)); !errors.Is(err, transfer.ErrBroken) {
		t.Errorf("without a page: got %v, want it refused", err)
	}
	size := len(good)
	for name, content := range map[string][]byte{
		"without its last byte":                  good[:size-1],
		"with one byte of its seal":              good[:made.Size+1],
		"without a seal, with a byte":            append(bytes.Clone(plain), 0),
		"with a byte added":                      append(bytes.Clone(good), 0),
		"with a page added":                      append(bytes.Clone(good), make([]byte, 4096)...),
		"with the rest of a page added":          append(bytes.Clone(good), make([]byte, len(plain)+4096-size)...),
		"with the rest of a page and one, added": append(bytes.Clone(good), make([]byte, len(plain)+2*4096-size)...),
	} {
		if got, err := restore(content); !errors.Is(err, transfer.ErrBroken) {
			t.Errorf("%s: got %+v, %v, want it refused", name, got, err)
		}
	}
	used := filepath.Join(dir, "used.db")
	if err := os.WriteFile(used, good, 0o600); err != nil {
		t.Fatal(err)
	}
	withStore(t, "sqlite:"+used, func(db.DB) {})
	if _, err := restore(must[[]byte](t)(os.ReadFile(used))); err != nil {
		t.Errorf("used as a store: got %v, want it restored", err)
	}
	withWAL := bytes.Clone(plain)
	copy(withWAL[18:], []byte{2, 2})
	if _, err := restore(withWAL); err != nil {
		t.Errorf("in WAL mode: got %v, want it restored", err)
	}
	copy(withWAL[4096*10:], make([]byte, 4096))
	if _, err := restore(withWAL); err == nil {
		t.Error("damaged in WAL mode: it was restored")
	}
}

// TestStageAfterKill: a staged backup replaces what a killed process left.
func TestStageAfterKill(t *testing.T) {
	url := newFile(t)
	withStore(t, url, func(store db.DB) { oddStore(t, store) })
	store := url[len("sqlite:"):]
	for _, left := range []string{".server.upload", ".server.upload.partial", ".command.upload"} {
		if err := os.WriteFile(store+left, []byte("half"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	const id = "0a1b2c3d4e5f"
	staged := must[transfer.Staged](t)(
		transfer.Stage(t.Context(), sqlite.Files{}, store, "server", id, time.Now(), noProgress{}))
	got := must[[]string](t)(filepath.Glob(store + "*.upload*"))
	if !slices.Equal(got, []string{store + ".command.upload", staged.Path}) || staged.Size < 4096 {
		t.Errorf("got %q and %+v, want the command's and one of the server's", got, staged)
	}
}
