package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"animalstore/internal/testenv"
)

// TestMakeWithoutGo: on a machine without Go, the README's commands say in one line
// what to install.
func TestMakeWithoutGo(t *testing.T) {
	t.Parallel()
	testenv.Need(t, "make")
	bin := t.TempDir()
	for _, tool := range []string{"make", "sh", "git"} {
		if path, err := exec.LookPath(tool); err == nil {
			if err := os.Symlink(path, filepath.Join(bin, tool)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, target := range []string{"run", "test"} {
		var stdout, stderr buffer
		cmd := exec.Command(filepath.Join(bin, "make"), "--no-print-directory", target)
		cmd.Dir, cmd.Env = "..", []string{"PATH=" + bin}
		cmd.Stdout, cmd.Stderr = &stdout, &stderr
		err := cmd.Run()
		const want = "please install Go 1.26 or newer: https://go.dev/dl\nmake: *** "
		if got := stderr.String(); err == nil || stdout.String() != "" || len(got) < len(want) || got[:len(want)] != want {
			t.Errorf("make %s: %v, prints\n%s%s\nwant %s", target, err, stdout.String(), got, want)
		}
	}
}
