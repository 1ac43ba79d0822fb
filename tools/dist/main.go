// Command dist builds all files of a release: archives for every platform, .deb and
// .rpm packages, container images, a list of their contents, the packages of clients in
// other languages, and checksums. Run it with "make dist".
//
// The same commit and the same Go version give the same bytes: files have the time of
// the commit, lists are sorted, and nothing depends on the machine.
package main

import (
	"bytes"
	"crypto/sha256"
	"flag"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

var platforms = []string{
	"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64",
}

// releaseFiles matches the names of all files but the checksums. npm and pip want a hyphen.
const releaseFiles = `animalstore[_\-]*`

// release describes the release being built.
type release struct {
	root    string // of the repository
	out     string
	install string // files that packages install in addition to the program, and their scripts
	version string
	commit  string
	source  string    // URL of the repository; "" if unknown
	time    time.Time // of every file
	fast    bool      // compress as little as possible

	extras   []file // files that go with every binary: README, man pages, completions
	licenses file
	built    []binary
}

// binary is the program for one platform.
type binary struct {
	os, arch string
	content  []byte
}

func main() {
	r := release{}
	flag.StringVar(&r.root, "root", "..", "root of the repository")
	flag.StringVar(&r.out, "out", "../dist", "directory to write to")
	flag.StringVar(&r.install, "install", "../packaging/linux", "directory with what packages install, for tests of upgrades")
	flag.StringVar(&r.version, "version", "", "version to build, for tests (default: from the file VERSION)")
	flag.StringVar(&r.source, "source", "", "URL of the repository, for the image (default: origin, if its URL is https)")
	only := flag.String("platform", "", "the only platform to build for, such as linux/amd64")
	given := flag.String("binary", "", "use this program for -platform instead of building it")
	client := flag.String("client", "", "build only the package of this client, such as typescript")
	flag.BoolVar(&r.fast, "fast", false, "compress as little as possible, for tests")
	flag.Parse()
	if *only != "" {
		platforms = []string{*only}
	}
	build := func() error { return r.build(*given, *only == "") }
	if *client != "" {
		build = func() error { return r.buildClient(*client) }
	}
	if err := build(); err != nil {
		fmt.Fprintln(os.Stderr, "dist:", err)
		os.Exit(1)
	}
}

// buildClient builds the package of one client. It leaves other files of a release alone.
func (r *release) buildClient(name string) error {
	write := clientPackages[name]
	if write == nil {
		return fmt.Errorf("there is no client %q", name)
	}
	if err := r.identify(); err != nil {
		return err
	}
	if err := os.MkdirAll(r.out, 0o755); err != nil {
		return err
	}
	return write(r)
}

// build builds everything; with clients, also the packages of clients.
func (r *release) build(given string, clients bool) error {
	if err := r.identify(); err != nil {
		return err
	}
	if err := r.prepareOut(); err != nil {
		return err
	}
	if err := r.compile(given); err != nil {
		return err
	}
	var err error
	if r.licenses, err = r.collectLicenses(); err != nil {
		return fmt.Errorf("collect licenses: %w", err)
	}
	if r.extras, err = r.generateExtras(); err != nil {
		return fmt.Errorf("generate man pages and completions: %w", err)
	}
	for _, b := range r.built {
		if err := r.writeArchive(b); err != nil {
			return fmt.Errorf("archive for %s/%s: %w", b.os, b.arch, err)
		}
		if b.os != "linux" {
			continue
		}
		if err := r.writePackages(b); err != nil {
			return fmt.Errorf("packages for %s: %w", b.arch, err)
		}
		if err := r.writeImage(b); err != nil {
			return fmt.Errorf("image for %s: %w", b.arch, err)
		}
	}
	if err := r.writeSBOM(); err != nil {
		return fmt.Errorf("SBOM: %w", err)
	}
	if clients {
		for name, write := range clientPackages {
			if err := write(r); err != nil {
				return fmt.Errorf("client for %s: %w", name, err)
			}
		}
	}
	return r.writeChecksums()
}

// identify determines the version, the commit and its time.
func (r *release) identify() error {
	// The owner of the checkout doesn't matter.
	git := func(args ...string) string {
		out, err := exec.Command("git", append([]string{"-c", "safe.directory=*", "-C", r.root}, args...)...).Output()
		if err != nil {
			return ""
		}
		return strings.TrimSpace(string(out))
	}
	r.commit = git("describe", "--always", "--exclude", "*", "--abbrev=12", "--dirty=.modified")
	if r.source == "" {
		// A clone's origin may also be a directory, and its URL may contain a token.
		if origin, err := url.Parse(git("remote", "get-url", "origin")); err == nil && origin.Scheme == "https" {
			origin.User = nil
			r.source = origin.String()
		}
	}
	if r.version == "" {
		text, err := os.ReadFile(filepath.Join(r.root, "VERSION"))
		if err != nil {
			return err
		}
		r.version = strings.TrimSpace(string(text))
		if strings.HasSuffix(r.version, "-dev") && r.commit != "" {
			r.version += "+" + r.commit
		}
	}
	epoch := os.Getenv("SOURCE_DATE_EPOCH")
	if epoch == "" {
		epoch = git("log", "-1", "--format=%ct")
	}
	seconds, err := strconv.ParseInt(epoch, 10, 64)
	if err != nil {
		return fmt.Errorf("the time of the commit is unknown: build in a clone of the repository, or set SOURCE_DATE_EPOCH")
	}
	r.time = time.Unix(seconds, 0).UTC()
	return nil
}

// prepareOut removes the files of an earlier run, so that the checksums cover exactly
// this one.
func (r *release) prepareOut() error {
	old, err := filepath.Glob(filepath.Join(r.out, releaseFiles))
	if err != nil {
		return err
	}
	for _, name := range append(old, filepath.Join(r.out, "SHA256SUMS")) {
		if err := os.Remove(name); err != nil && !os.IsNotExist(err) {
			return err
		}
	}
	return os.MkdirAll(r.out, 0o755)
}

// compile builds the program for every platform, or uses the given one.
func (r *release) compile(given string) error {
	dir, err := os.MkdirTemp("", "animalstore-dist-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, platform := range platforms {
		system, arch, ok := strings.Cut(platform, "/")
		if !ok {
			return fmt.Errorf("-platform must be like linux/amd64, not %q", platform)
		}
		path := given
		if path == "" {
			path = filepath.Join(dir, system+"-"+arch)
			fmt.Println("building for", platform)
			flags := []string{"-pgo", "packaging/profile/animalstore.pgo"}
			if err := r.goBuild(path, flags, "GOOS="+system, "GOARCH="+arch); err != nil {
				return err
			}
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		r.built = append(r.built, binary{system, arch, content})
	}
	return nil
}

// goBuild compiles the program like "make build", with more flags.
func (r *release) goBuild(path string, flags []string, env ...string) error {
	path, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	args := []string{"-C", r.root, "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w -X main.commit=" + r.commit, "-o", path}
	cmd := exec.Command("go", slices.Concat(args, flags, []string{"./cmd/animalstore"})...)
	cmd.Env = append(append(os.Environ(), "CGO_ENABLED=0"), env...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, out)
	}
	return nil
}

// generateExtras runs the program, built with its man page generator.
func (r *release) generateExtras() ([]file, error) {
	dir, err := os.MkdirTemp("", "animalstore-dist-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "animalstore")
	if err := r.goBuild(program, []string{"-tags", "man"}, "GOOS="+runtime.GOOS, "GOARCH="+runtime.GOARCH); err != nil {
		return nil, err
	}
	man := filepath.Join(dir, "man")
	if out, err := exec.Command(program, "man", man, r.version, r.time.Format(time.RFC3339)).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	files, err := readFiles(man, "man/man1/", "*.1")
	if err != nil {
		return nil, err
	}
	for shell, name := range map[string]string{"bash": "animalstore.bash", "zsh": "_animalstore", "fish": "animalstore.fish", "powershell": "animalstore.ps1"} {
		script, err := exec.Command(program, "completion", shell).Output()
		if err != nil {
			return nil, err
		}
		files = append(files, file{"completions/" + name, 0o644, script})
	}
	for _, pattern := range []string{"README.md", "CHANGELOG.md", "LICENSE*"} {
		more, err := readFiles(r.root, "", pattern)
		if err != nil {
			return nil, err
		}
		files = append(files, more...)
	}
	slices.SortFunc(files, byName)
	return files, nil
}

// write creates a file of the release.
func (r *release) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(r.out, name), content, 0o644)
}

// name is the name of a file of the release without its extension.
func (r *release) name(b binary) string {
	return fmt.Sprintf("animalstore_%s_%s_%s", r.version, b.os, b.arch)
}

// writeChecksums writes the checksums of all files, so it must come last.
func (r *release) writeChecksums() error {
	files, err := readFiles(r.out, "", releaseFiles)
	if err != nil {
		return err
	}
	var sums bytes.Buffer
	for _, f := range files {
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(f.content), f.name)
	}
	return r.write("SHA256SUMS", sums.Bytes())
}
