//go:build linux

package e2e

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"animalstore/internal/testenv"
)

// dist is a directory with the release 1.0.0 for this machine, built from the binary under
// test.
var dist = sync.OnceValues(func() (string, error) {
	dir := filepath.Join(filepath.Dir(binary), "dist")
	return dir, runDist("-out", dir, "-binary", binary, "-version", "1.0.0", "-source", "https://git.example/animalstore")
})

// runDist runs the release builder.
func runDist(flags ...string) error {
	argv := append([]string{"-C", "../tools", "run", "./dist", "-platform", "linux/" + runtime.GOARCH, "-fast"}, flags...)
	cmd := exec.Command("go", argv...)
	cmd.Env = slices.Concat(os.Environ(), testenv.BuildFlags, []string{"SOURCE_DATE_EPOCH=1800000000"})
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w\n%s", err, text)
	}
	return nil
}

// artifact returns the path of a file of the release.
func artifact(t *testing.T, extension string) string {
	t.Helper()
	dir, err := dist()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(dir, "animalstore_1.0.0_linux_"+runtime.GOARCH+extension)
}

// TestRelease_Slow checks the archive with its static program, the checksums and the list of
// modules in the program.
func TestRelease_Slow(t *testing.T) {
	t.Parallel()
	archive := readTar(t, artifact(t, ".tar.gz"))
	dir := filepath.Dir(artifact(t, ""))
	prefix := "animalstore_1.0.0_linux_" + runtime.GOARCH + "/"
	for _, name := range []string{"README.md", "CHANGELOG.md", "man/man1/animalstore-serve.1", "completions/animalstore.bash", "completions/_animalstore", "completions/animalstore.fish"} {
		if len(archive[prefix+name]) == 0 {
			t.Errorf("the archive lacks %s", name)
		}
	}
	if string(archive[prefix+"animalstore"]) != contents(binary) {
		t.Error("the archive doesn't have the program")
	}
	program, err := elf.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	for _, p := range program.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("the program has a segment %s, want it to need no libraries", p.Type)
		}
	}
	var want strings.Builder
	for _, name := range filesIn(t, dir) {
		if name != "SHA256SUMS" {
			fmt.Fprintf(&want, "%x  %s\n", sha256.Sum256(mustRead(t, filepath.Join(dir, name))), name)
		}
	}
	if got := contents(filepath.Join(dir, "SHA256SUMS")); got != want.String() {
		t.Errorf("SHA256SUMS has\n%s\nwant\n%s", got, &want)
	}
	var sbom struct {
		BOMFormat  string
		Components []struct{ Name, Version, PURL string }
	}
	parse(t, mustRead(t, filepath.Join(dir, "animalstore_1.0.0_sbom.cdx.json")), &sbom)
	modules := 0
	for _, c := range sbom.Components {
		if strings.HasPrefix(c.PURL, "pkg:golang/") && c.Version != "" {
			modules++
		}
	}
	if sbom.BOMFormat != "CycloneDX" || modules < 10 {
		t.Errorf("the list is %q with %d modules, want CycloneDX with all of them", sbom.BOMFormat, modules)
	}
}

// TestReproducible runs "make dist" in two clones, in different time zones and with different
// directories for temporary files: every file has the same bytes.
func TestReproducible(t *testing.T) {
	testenv.OnlySoak(t, "compiles for six platforms")
	var outs []string
	for _, zone := range []string{"UTC", "Asia/Kolkata"} {
		clone := filepath.Join(t.TempDir(), filepath.Base(zone))
		for _, argv := range [][]string{
			{"git", "-c", "safe.directory=*", "clone", "--quiet", "--no-hardlinks", "..", clone},
			{"make", "--no-print-directory", "-C", clone, "dist"},
		} {
			cmd := exec.Command(argv[0], argv[1:]...)
			cmd.Env = append(os.Environ(), "TZ="+zone, "LC_ALL=C", "TMPDIR="+t.TempDir())
			output(t, cmd)
		}
		outs = append(outs, filepath.Join(clone, "dist"))
	}
	files := filesIn(t, outs[0])
	if others := filesIn(t, outs[1]); len(files) < 14 || !slices.Equal(files, others) {
		t.Fatalf("got the files %q and %q, want the same six archives, and four packages and two images for Linux", files, others)
	}
	for _, name := range files {
		if !bytes.Equal(mustRead(t, filepath.Join(outs[0], name)), mustRead(t, filepath.Join(outs[1], name))) {
			t.Errorf("%s isn't the same when it is built again", name)
		}
	}
}

// filesIn returns the names of a directory's files, in order.
func filesIn(t *testing.T, dir string) (names []string) {
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
