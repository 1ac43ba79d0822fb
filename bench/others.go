package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// peer is another server for the same work. Its source is in peers/, under its
// name, and has two commands: one fills a database from rows on its standard
// input and prints a key, the other serves.
type peer struct {
	name  string
	tools []string
	api   api
	// build leaves what is needed to run it at a path, which is kept as long as
	// the source doesn't change.
	build func(b *bench, source, path string)
	run   func(built string) []string // the command line, before "seed" or "serve"
	about func(b *bench, source string) string
}

func (p peer) start(b *bench) *server {
	for _, tool := range p.tools {
		if _, err := exec.LookPath(tool); err != nil {
			check(unavailableError{fmt.Errorf("install %s: %w", tool, err)})
		}
	}
	source := filepath.Join(b.root, "bench", "peers", p.name)
	id := fingerprint(source, "")
	var built string
	err := attempt(func() {
		built = b.cached(p.name+"-"+id, func(path string) {
			progress("building %s, which can take minutes", p.name)
			p.build(b, source, path)
		})
	})
	if err != nil {
		check(unavailableError{err})
	}
	run := p.run(built)
	seeded := b.cached(fmt.Sprintf("%s-%s-%d", p.name, id, b.pets), func(dir string) { b.fillPeer(dir, run) })
	dir := filepath.Join(b.work, p.name)
	b.copyTree(dir, seeded)
	s := server{name: p.name, api: p.api, pets: b.pets, about: p.about(b, source), peer: true}
	s.key = string(must(os.ReadFile(filepath.Join(dir, "key"))))
	return b.start(s, func(addr string) []string {
		return append(slices.Clone(run), "serve", filepath.Join(dir, "data"), addr)
	})
}

// fillPeer creates a directory with a peer's database and its key.
func (b *bench) fillPeer(dir string, run []string) {
	check(os.Mkdir(dir, 0o700))
	args := append(slices.Clone(run), "seed", filepath.Join(dir, "data"))
	cmd := exec.CommandContext(b.ctx, args[0], args[1:]...)
	rows, in := io.Pipe()
	cmd.Stdin = rows
	go func() { in.CloseWithError(writeRows(in, b.pets)) }()
	key, err := firstLineOf(cmd)
	rows.Close() // or the other end would wait for a program that has failed
	check(err)
	check(os.WriteFile(filepath.Join(dir, "key"), []byte(key), 0o600))
}

var pocketBase = peer{
	name: "pocketbase",
	api:  pocketBaseAPI,
	// It may need a newer Go than there is.
	build: func(b *bench, source, path string) { b.goBuild(source, ".", path) },
	run:   func(built string) []string { return []string{built} },
	about: func(b *bench, source string) string {
		version := b.output(source, "go", "list", "-m", "-f", "{{.Version}}", "github.com/pocketbase/pocketbase")
		return "PocketBase " + version + ", WAL and synchronous=FULL, its own records API, an auth token per request"
	},
}

// fastify is built away from the source tree: among its packages is some Go, which
// go vet would take for ours.
var fastify = peer{
	name:  "fastify",
	tools: []string{"node", "npm"},
	api:   plainAPI,
	build: func(b *bench, source, path string) {
		b.copyTree(path, source)
		b.output(path, "npm", "ci", "--no-audit", "--no-fund")
		// npm may leave out the step that builds it, with no more than a warning.
		b.output(path, "node", "--input-type=commonjs", "-e", "new (require('better-sqlite3'))(':memory:')")
	},
	run: func(built string) []string { return []string{"node", filepath.Join(built, "main.js")} },
	about: func(b *bench, source string) string {
		var manifest struct{ Dependencies map[string]string }
		check(json.Unmarshal(must(os.ReadFile(filepath.Join(source, "package.json"))), &manifest))
		return fmt.Sprintf("Fastify %s, better-sqlite3 %s, Node %s, WAL and synchronous=FULL, a process for each of %d cores",
			manifest.Dependencies["fastify"], manifest.Dependencies["better-sqlite3"], b.output("", "node", "--version"), runtime.NumCPU())
	},
}

// axum stores with rusqlite.
var axum = peer{
	name:  "axum",
	tools: []string{"cargo"},
	api:   plainAPI,
	build: func(b *bench, source, path string) {
		target := path + ".target"
		defer os.RemoveAll(target)
		b.output(source, "cargo", "build", "--release", "--locked", "--quiet", "--target-dir", target)
		check(os.Rename(filepath.Join(target, "release", "animalstore-bench-axum"), path))
	},
	run: pocketBase.run,
	about: func(_ *bench, source string) string {
		manifest := must(os.ReadFile(filepath.Join(source, "Cargo.toml")))
		var versions []string
		for _, v := range regexp.MustCompile(`(?m)^(axum|rusqlite) = .*"=([0-9.]+)"`).FindAllStringSubmatch(string(manifest), -1) {
			versions = append(versions, v[1]+" "+v[2])
		}
		return strings.Join(versions, ", ") + ", WAL and synchronous=FULL, a thread for each core"
	},
}
