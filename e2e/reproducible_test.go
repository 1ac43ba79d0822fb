package e2e

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestReproducible builds the release for this machine again, in another time zone and
// with temporary files elsewhere: every file has the same bytes.
func TestReproducible(t *testing.T) {
	t.Parallel()
	first := filepath.Dir(artifact(t, ".deb"))
	second := filepath.Join(t.TempDir(), "again")
	if err := runDist(second, "TZ=Asia/Kolkata", "LC_ALL=C", "TMPDIR="+t.TempDir()); err != nil {
		t.Fatal(err)
	}
	if n := wantSameFiles(t, first, second); n < 6 { // .deb, .rpm, image, archive, SBOM, checksums
		t.Errorf("the release has %d files, want all", n)
	}
}

// TestReproducibleForAllPlatforms runs "make dist" in two clones, and compares
// everything they compile.
func TestReproducibleForAllPlatforms(t *testing.T) {
	if !soak {
		t.Skip("compiling for six platforms takes minutes: this runs in make soak")
	}
	var outs []string
	for _, name := range []string{"one", "another"} {
		clone := filepath.Join(t.TempDir(), name)
		for _, argv := range [][]string{
			{"git", "-c", "safe.directory=*", "clone", "--quiet", "--no-hardlinks", "..", clone},
			{"make", "--no-print-directory", "-C", clone, "dist"},
		} {
			if out, err := exec.Command(argv[0], argv[1:]...).CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", argv, err, out)
			}
		}
		outs = append(outs, filepath.Join(clone, "dist"))
	}
	if n := wantSameFiles(t, outs[0], outs[1]); n < 14 {
		t.Errorf("the release has %d files, want six archives, and four packages and two images for Linux", n)
	}
}

// wantSameFiles compares the files of two directories, and returns how many there are.
func wantSameFiles(t *testing.T, one, another string) int {
	t.Helper()
	files, others := list(t, one), list(t, another)
	if strings.Join(files, "\n") != strings.Join(others, "\n") {
		t.Fatalf("one release has the files %q, the other %q", files, others)
	}
	for _, name := range files {
		if !bytes.Equal(mustRead(t, filepath.Join(one, name)), mustRead(t, filepath.Join(another, name))) {
			t.Errorf("%s isn't the same when it is built again", name)
		}
	}
	return len(files)
}

// list returns the names of a directory's files, in order.
func list(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
