package transfer

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestUnlockedFile: if another process starts a file of the same name while ours is
// unlocked, it is neither published nor removed.
func TestUnlockedFile(t *testing.T) {
	t.Parallel()
	for name, taken := range map[string]bool{"returned": false, "taken": true} {
		path := filepath.Join(t.TempDir(), "store.db")
		f, err := createNew(path)
		if err != nil {
			t.Fatal(err)
		}
		err = f.withUnlocked(func(partial string) error {
			if !taken {
				return nil
			}
			return errors.Join(os.Remove(partial), os.WriteFile(partial, []byte("theirs"), 0o600))
		})
		if taken != errors.Is(err, errBeingWritten) || !taken && err != nil {
			t.Errorf("%s: got %v", name, err)
		}
		f.close()
		if _, err := os.Stat(path + partialSuffix); os.IsNotExist(err) == taken {
			t.Errorf("%s: the unfinished file: %v, want it removed only if it is ours", name, err)
		}
	}
}
