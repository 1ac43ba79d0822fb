package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// bench is one run: its settings, where it works, and what it has started.
type bench struct {
	options
	ctx     context.Context // ends the run early
	command string
	root    string // of this module's source
	work    string // a directory that is removed at the end
	release string // the server as it is released
	sync    time.Duration
	load    *generator // nil if no load is sent
	started []*process
}

func (b *bench) open() {
	b.root = b.output("", "go", "list", "-m", "-f", "{{.Dir}}")
	b.work = must(os.MkdirTemp(b.dir, "animalstore-bench-"))
	check(os.Chmod(b.work, 0o711)) // PostgreSQL runs as another user and has its files in there
}

// close stops what is still running, the latest first.
func (b *bench) close() {
	for _, p := range slices.Backward(b.started) {
		p.stop()
	}
	if b.work != "" {
		os.RemoveAll(b.work)
	}
}

// prepare builds the release and finds wrk, for commands that send load.
func (b *bench) prepare() {
	b.load = newGenerator(b.work)
	b.sync = syncTime(b.work)
	b.release = b.build("release", b.root)
}

// build compiles the server in a source tree.
func (b *bench) build(name, root string) (bin string) {
	progress("building %s", name)
	bin = filepath.Join(b.work, "bin-"+name)
	b.goBuild(root, "./cmd/animalstore", bin)
	return bin
}

// goBuild compiles a package of the module in dir as releases are.
func (b *bench) goBuild(dir, pkg, bin string) {
	b.output(dir, "env", "CGO_ENABLED=0", "go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", bin, pkg)
}

// buildRevision compiles the server of another commit, in a worktree that is
// removed afterwards.
func (b *bench) buildRevision(name, revision string) (bin string) {
	tree := filepath.Join(b.work, "tree-"+name)
	b.output(b.root, "git", "worktree", "add", "--quiet", "--detach", tree, revision)
	defer exec.Command("git", "-C", b.root, "worktree", "remove", "--force", tree).Run()
	return b.build(name, tree)
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

// notes describe the conditions that the figures were measured under.
func (b *bench) notes() []string {
	if b.load == nil {
		return []string{"Measured on the database itself, with one reader and no page cache"}
	}
	return append([]string{fmt.Sprintf("%s pets; a 4 KiB write and fsync takes %v here", grouped(b.pets), b.sync)}, b.load.notes()...)
}

// syncTime is how long it takes to get a page on disk, which is the cost of a
// create that doesn't share a commit.
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
