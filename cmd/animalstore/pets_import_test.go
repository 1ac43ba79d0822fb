package main

import (
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"animalstore/client/clienttest"
)

// TestOldImportIsRefused: the server recognizes repeated requests for 24 hours, so
// an import that stopped 23 hours ago or earlier can't be continued safely.
func TestOldImportIsRefused(t *testing.T) {
	server := clienttest.New(t)
	t.Setenv(keyVariable, server.Key)
	for age, want := range map[time.Duration]int{22*time.Hour + 59*time.Minute: 0, 23*time.Hour + time.Minute: exitUsage} {
		file := filepath.Join(t.TempDir(), "pets.csv")
		journal := fmt.Sprintf(`{"server":"%s/v1","key":"%x","rows":1,"checksum":"x","updated":%q}`,
			server.URL, sha256Prefix("import by "+server.Key), time.Now().Add(-age).Format(time.RFC3339))
		for name, content := range map[string]string{file: "name,categoryId\nRex,7\n", file + ".progress": journal} {
			if err := os.WriteFile(name, []byte(content), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		root := newCommand()
		root.SetErr(io.Discard)
		root.SetArgs([]string{"pets", "import", file, "--url", server.URL})
		err := root.ExecuteContext(t.Context())
		if code := codeOf(err); code != want {
			t.Errorf("an import that stopped %v ago: got exit code %d (%v), want %d", age, code, err, want)
		}
	}
}

func sha256Prefix(s string) []byte {
	sum := sha256.Sum256([]byte(s))
	return sum[:8]
}

func codeOf(err error) int {
	if err == nil {
		return 0
	}
	return exitCode(err)
}
