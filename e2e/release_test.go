package e2e

import (
	"crypto/sha256"
	"debug/elf"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"animalstore"
)

// TestRelease looks into the files that packages aren't: the archive, the checksums and
// the list of what the program is built from.
func TestRelease(t *testing.T) {
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
	var want strings.Builder
	for _, name := range list(t, dir) {
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

// TestStaticBinary: the program needs no libraries.
func TestStaticBinary(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has programs without libraries")
	}
	program, err := elf.Open(binary)
	if err != nil {
		t.Fatal(err)
	}
	defer program.Close()
	for _, p := range program.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			t.Errorf("the program has a segment %s, want none", p.Type)
		}
	}
}

// TestOneVersion: wherever a server shows its version, it is that of the file VERSION.
func TestOneVersion(t *testing.T) {
	t.Parallel()
	want := strings.TrimSpace(string(mustRead(t, "../VERSION")))
	if animalstore.Version() != want {
		t.Errorf("the package says %q, want %q", animalstore.Version(), want)
	}
	s := start(t, withOps())
	for what, text := range map[string]string{
		"--version": run(t, "--version").stdout, "version": run(t, "version").stdout,
		"/": newClient(t, s, "").get(t, "/").body, "metrics": firstLine(s.metrics(), "animalstore_build_info{"),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s: got %.300s, want %s in it", what, text, want)
		}
	}
}

// firstLine is the first line that begins with a prefix, or "".
func firstLine(text, prefix string) string {
	for line := range strings.Lines(text) {
		if strings.HasPrefix(line, prefix) {
			return line
		}
	}
	return ""
}
