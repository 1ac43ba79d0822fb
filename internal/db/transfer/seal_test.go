//go:build unix

package transfer_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"animalstore/internal/db"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/db/transfer"
)

type noProgress struct{}

func (noProgress) Copied(int64, int64)      {}
func (noProgress) Checking(string)          {}
func (noProgress) Checked(transfer.Finding) {}

// TestSeal: a backup with one flipped bit, anywhere, isn't restored, nor is one that was cut
// off. One without a seal, from another tool, is.
func TestSeal(t *testing.T) {
	url := newFile(t)
	withStore(t, url, func(store db.DB) { oddStore(t, store) })
	dir := t.TempDir()
	file := filepath.Join(dir, "backup.db")
	made := must[transfer.Copied](t)(transfer.Backup(t.Context(), sqlite.Files{}, url[len("sqlite:"):], file, noProgress{}))
	good := must[[]byte](t)(os.ReadFile(file))
	plain := good[:made.Size]
	restore := func(content []byte) (transfer.Copied, error) {
		backup, store := filepath.Join(t.TempDir(), "backup.db"), filepath.Join(t.TempDir(), "store.db")
		if err := os.WriteFile(backup, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return transfer.Restore(t.Context(), sqlite.Files{}, transfer.Restoration{Backup: backup, Store: store}, noProgress{})
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
}
