package transfer

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// TestLentFile: what another process began under the same name while a file was lent is
// neither published nor removed.
func TestLentFile(t *testing.T) {
	t.Parallel()
	for name, taken := range map[string]bool{"returned": false, "taken": true} {
		path := filepath.Join(t.TempDir(), "store.db")
		f, err := createNew(path)
		if err != nil {
			t.Fatal(err)
		}
		err = f.lend(func(partial string) error {
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
