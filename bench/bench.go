package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// bench is one run: its settings, its directories, and the processes it has started.
type bench struct {
	options
	ctx     context.Context // ends the run early
	command string
	root    string // of this module's source
	work    string // removed at the end
	release string // the release build of the server
	sync    time.Duration
	load    *generator
	started []*process
}

func (b *bench) open() {
	b.root = b.output("", "go", "list", "-m", "-f", "{{.Dir}}")
	b.work = must(os.MkdirTemp(b.dir, "animalstore-bench-"))
	check(os.Chmod(b.work, 0o711)) // PostgreSQL runs as another user and keeps its files there
}

// close stops everything that is still running, in reverse order of starting.
func (b *bench) close() {
	for _, p := range slices.Backward(b.started) {
		p.stop()
	}
	if b.work != "" {
		os.RemoveAll(b.work)
	}
}

// prepare builds the release, unless there is a build, and finds wrk.
func (b *bench) prepare() {
	raiseFileLimit()
	b.load = newGenerator(b.work)
	b.sync = syncTime(b.work)
	if b.release == "" {
		b.release = b.buildRelease("release", b.root)
	}
}

// buildRelease compiles the server in a source tree as "make dist" does.
func (b *bench) buildRelease(name, root string) (bin string) {
	profile := filepath.Join(root, releaseProfile)
	if _, err := os.Stat(profile); err != nil {
		profile = "off" // an older commit without one
	}
	return b.build(name, root, profile)
}

// build compiles the server in a source tree, guided by a profile unless that is "off".
func (b *bench) build(name, root, profile string) (bin string) {
	progress("building %s", name)
	bin = filepath.Join(b.work, "bin-"+name)
	b.goBuild(root, "./cmd/animalstore", bin, "-pgo", profile)
	return bin
}

// goBuild compiles a package of the module in dir with the flags of a release.
func (b *bench) goBuild(dir, pkg, bin string, flags ...string) {
	args := []string{"env", "CGO_ENABLED=0", "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", bin}
	b.output(dir, slices.Concat(args, flags, []string{pkg})...)
}

// buildRevision compiles the server of another commit, in a worktree that is removed
// afterwards.
func (b *bench) buildRevision(name, revision string) (bin string) {
	tree := filepath.Join(b.work, "tree-"+name)
	b.output(b.root, "git", "worktree", "add", "--quiet", "--detach", tree, revision)
	defer exec.Command("git", "-C", b.root, "worktree", "remove", "--force", tree).Run()
	return b.buildRelease(name, tree)
}

// output runs a command in dir and returns the first line it prints.
func (b *bench) output(dir string, args ...string) (firstLine string) {
	cmd := exec.CommandContext(b.ctx, args[0], args[1:]...)
	cmd.Dir = dir
	return must(firstLineOf(cmd))
}

// firstLineOf runs a command. Its error contains everything the command printed.
func firstLineOf(cmd *exec.Cmd) (string, error) {
	var out, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s%s", strings.Join(cmd.Args, " "), err, out.String(), stderr.String())
	}
	line, _, _ := strings.Cut(out.String(), "\n")
	return strings.TrimSpace(line), nil
}

// notes describe the conditions under which the figures were measured.
func (b *bench) notes() []string {
	return append([]string{fmt.Sprintf("%s pets; a 4 KiB write and fsync takes %v here", grouped(b.pets), b.sync)}, b.load.notes()...)
}

// syncTime is how long it takes to write a page to disk, which is the cost of a create
// that doesn't share a commit.
func syncTime(dir string) time.Duration {
	f := must(os.Create(filepath.Join(dir, "sync")))
	defer f.Close()
	var took []time.Duration
	page := make([]byte, 4096)
	for range 50 {
		start := time.Now()
		must(f.Write(page))
		check(f.Sync())
		took = append(took, time.Since(start))
	}
	return median(took).Round(time.Microsecond)
}

// cached returns the path of a file or directory that is kept between runs. If it
// doesn't exist, fill creates it at the given path. The name must reflect everything
// that the contents depend on.
func (b *bench) cached(name string, fill func(part string)) string {
	dir := filepath.Join(b.dir, "animalstore-bench-cache")
	// Other users may pass through: PostgreSQL doesn't run as root.
	check(errors.Join(os.MkdirAll(dir, 0o711), os.Chmod(dir, 0o711)))
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		check(err)
		return path
	}
	progress("creating %s for this run and later ones", path)
	part := path + ".part"
	check(os.RemoveAll(part))
	defer os.RemoveAll(part)
	fill(part)
	check(os.Rename(part, path))
	return path
}

// copyTree copies a file or directory with owners and modes, and syncs it to disk, so
// that later writes don't wait for it.
func (b *bench) copyTree(to, from string) {
	b.output("", "cp", "-a", from, to)
	b.output("", "sync", "-f", to)
}

// fingerprint identifies the contents of the files and directories below root that
// match the patterns. It is part of the names in the cache.
func fingerprint(root string, patterns ...string) string {
	sum := sha256.New()
	for _, pattern := range patterns {
		paths := must(filepath.Glob(filepath.Join(root, pattern)))
		if len(paths) == 0 {
			check(fmt.Errorf("nothing is named %s", pattern))
		}
		for _, path := range paths {
			check(filepath.WalkDir(path, func(file string, entry fs.DirEntry, err error) error {
				if err == nil && entry.Type().IsRegular() {
					text := must(os.ReadFile(file))
					fmt.Fprintf(sum, "%s %d\n%s", file[len(root):], len(text), text)
				}
				return err
			}))
		}
	}
	return fmt.Sprintf("%x", sum.Sum(nil))[:12]
}

// A benchmark is useless once something has failed, so an error ends it at once, as
// t.Fatal ends a test: check and must panic with a failure, which attempt turns into an
// error again. Functions return an error only where it can be handled.
type failure struct{ error }

func check(err error) {
	if err != nil {
		panic(failure{err})
	}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

// attempt calls f and returns the error that ended it, if any.
func attempt(f func()) (err error) {
	defer func() {
		switch thrown := recover().(type) {
		case nil:
		case failure:
			err = thrown.error
		default:
			panic(thrown)
		}
	}()
	f()
	return nil
}

// unavailableError says why a server can't be built or run here.
type unavailableError struct{ error }
