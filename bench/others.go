package main

import (
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// peer is another server for the same work. Its source is in peers/, under its name,
// and has two commands: one fills a database from rows on standard input and prints a
// key, the other serves.
type peer struct {
	name  string
	tools []string
	api   api
	// build puts everything needed to run it at a path, which is kept as long as the
	// source doesn't change.
	build    func(b *bench, source, path string)
	run      func(built string) []string // the command line, before "seed" or "serve"
	file     string                      // its SQLite database
	manifest string                      // the source file that names versions
	versions *regexp.Regexp              // matches them in manifest
	settings string
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
	s := server{name: p.name, api: p.api, pets: b.pets, about: p.about(b, source), peer: true, file: filepath.Join(dir, p.file)}
	s.key = string(must(os.ReadFile(filepath.Join(dir, "key"))))
	return b.start(s, func(addr string) []string {
		return append(slices.Clone(run), "serve", filepath.Join(dir, "data"), addr)
	})
}

// about describes its versions and settings, for the report.
func (p peer) about(b *bench, source string) string {
	var parts []string
	for _, v := range p.versions.FindAllStringSubmatch(string(must(os.ReadFile(filepath.Join(source, p.manifest)))), -1) {
		parts = append(parts, v[1]+" "+v[2])
	}
	for _, tool := range p.tools {
		parts = append(parts, tool+" "+strings.TrimPrefix(b.output("", tool, "--version"), tool+" "))
	}
	return strings.Join(append(parts, "WAL and synchronous=FULL", p.settings), ", ")
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
	rows.Close() // otherwise the other end would wait for a failed program
	check(err)
	check(os.WriteFile(filepath.Join(dir, "key"), []byte(key), 0o600))
}

var pocketBase = peer{
	name: "pocketbase",
	api:  pocketBaseAPI,
	// It may need a newer Go than the installed one.
	build:    func(b *bench, source, path string) { b.goBuild(source, ".", path) },
	run:      func(built string) []string { return []string{built} },
	file:     "data/data.db",
	manifest: "go.mod",
	versions: regexp.MustCompile(`github.com/pocketbase/(pocketbase) (v[0-9.]+)`),
	settings: "PocketBase's records API, an auth token per request",
}

// fastify is built outside the source tree: its packages contain some Go, which go vet
// would check as ours.
var fastify = peer{
	name:  "fastify",
	tools: []string{"node", "npm"},
	api:   peerAPI,
	build: func(b *bench, source, path string) {
		b.copyTree(path, source)
		b.output(path, "npm", "ci", "--no-audit", "--no-fund")
		// npm may skip the step that builds it, with just a warning.
		b.output(path, "node", "--input-type=commonjs", "-e", "new (require('better-sqlite3'))(':memory:')")
	},
	run:      func(built string) []string { return []string{"node", filepath.Join(built, "main.js")} },
	file:     "data",
	manifest: "package.json",
	versions: regexp.MustCompile(`"(fastify|better-sqlite3)": "([0-9.]+)"`),
	settings: "a process for each core",
}

// axum stores with rusqlite.
var axum = peer{
	name:  "axum",
	tools: []string{"cargo"},
	api:   peerAPI,
	build: func(b *bench, source, path string) {
		target := path + ".target"
		defer os.RemoveAll(target)
		b.output(source, "cargo", "build", "--release", "--locked", "--quiet", "--target-dir", target)
		check(os.Rename(filepath.Join(target, "release", "animalstore-bench-axum"), path))
	},
	run:      pocketBase.run,
	file:     "data",
	manifest: "Cargo.toml",
	versions: regexp.MustCompile(`(?m)^(axum|rusqlite) = .*"=([0-9.]+)"`),
	settings: "a thread for each core",
}

// startOnPostgres starts the release build with its own PostgreSQL and Redis. Their
// processor time counts as its own.
func startOnPostgres(b *bench) *server {
	pg := findPostgres(b)
	database, url := pg.runSeeded(b.pets, false)
	return pg.startBuild(b.withKeys("postgres", url, b.pets, b.amount(redisKeys)), b.release, url, database)
}

// redisKeys is the number of keys in the load of a server with Redis. At what plans
// allow, that much load comes from many callers.
const redisKeys = 1_000

// startBuild starts a build of the service with its own Redis.
func (pg *postgres) startBuild(s server, bin, url string, database *process, flags ...string) *server {
	redis, redisURL, redisVersion := pg.startRedis("redis-" + s.name)
	s.backends, s.rotateKeys = []*process{database, redis}, true
	s.about = fmt.Sprintf("the release build on PostgreSQL %s (fsync and synchronous_commit on, shared_buffers=256MB) and %s", pg.version, redisVersion)
	return pg.bench.startBuild(s, bin, url, append(flags, "--redis", redisURL)...)
}

// runSeeded starts a cluster with pets in it.
func (pg *postgres) runSeeded(pets int, halved bool) (p *process, url string) {
	schema := fingerprint(pg.root, "internal/db/postgres/migrations", "internal/db/postgres/migrate.go", "internal/sample", "bench/seed.go")
	seeded := pg.cached(fmt.Sprintf("postgres-%s-%d-%t-%s", pg.version, pets, halved, schema), func(data string) { pg.create(data, pets, halved) })
	data := filepath.Join(pg.work, fmt.Sprint("postgres-", pets))
	pg.copyTree(data, seeded)
	return pg.run(data)
}

// postgres is an installation of PostgreSQL.
type postgres struct {
	*bench
	bin, version string
	as           *syscall.SysProcAttr // the user to run as
}

// findPostgres finds a directory with PostgreSQL's server and client. Distributions
// have one for each version, and may link a few of the programs elsewhere.
func findPostgres(b *bench) *postgres {
	servers := must(filepath.Glob("/usr/lib/postgresql/*/bin/postgres"))
	if path, err := exec.LookPath("postgres"); err == nil {
		servers = append([]string{path}, servers...)
	}
	for _, server := range slices.Backward(servers) {
		bin := filepath.Dir(server)
		_, err := os.Stat(filepath.Join(bin, "initdb"))
		_, err2 := os.Stat(filepath.Join(bin, "psql"))
		if err == nil && err2 == nil {
			version := strings.TrimPrefix(b.output("", server, "--version"), "postgres (PostgreSQL) ")
			return &postgres{b, bin, strings.Fields(version)[0], notRoot()}
		}
	}
	check(unavailableError{errors.New("no directory has postgres, initdb and psql: install the package postgresql")})
	return nil
}

// create creates a cluster with pets in it.
func (pg *postgres) create(data string, pets int, halved bool) {
	check(os.Mkdir(data, 0o700))
	if pg.as != nil {
		check(os.Chown(data, int(pg.as.Credential.Uid), int(pg.as.Credential.Gid)))
	}
	initdb := exec.CommandContext(pg.ctx, filepath.Join(pg.bin, "initdb"), "-D", data, "-U", "bench", "-A", "trust", "-E", "UTF8", "--locale=C")
	initdb.SysProcAttr, initdb.Dir = pg.as, "/"
	must(firstLineOf(initdb))
	running, url := pg.run(data)
	defer running.stop()
	pg.seed(url, pets, halved)
	pg.execute(url, "VACUUM ANALYZE")
}

// run starts the server on data.
func (pg *postgres) run(data string) (p *process, url string) {
	addr := freeAddr()
	_, port, _ := strings.Cut(addr, ":")
	url = "postgres://bench@" + addr + "/postgres?sslmode=disable"
	// An interrupt is a fast shutdown: SIGTERM would wait for clients.
	p = pg.launch("postgresql", os.Interrupt, pg.as, filepath.Join(pg.bin, "postgres"), "-D", data, "-p", port,
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
		"-c", "fsync=on", "-c", "synchronous_commit=on", "-c", "full_page_writes=on",
		"-c", "shared_buffers=256MB", "-c", "max_wal_size=2GB",
		"-c", "max_connections=200") // for eight instances
	pg.await(p, func() { pg.execute(url, "SELECT 1") })
	return p, url
}

func (pg *postgres) execute(url, statement string) {
	pg.output("", filepath.Join(pg.bin, "psql"), "-q", "-d", url, "-c", statement)
}

// startRedis starts a Redis that stores nothing: the limits that must survive are also
// in the database.
func (b *bench) startRedis(name string) (p *process, url, version string) {
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		check(unavailableError{fmt.Errorf("there is no Redis server: install the package redis-server (%w)", err)})
	}
	version, _, _ = strings.Cut(b.output("", bin, "--version"), " sha")
	addr := freeAddr()
	_, port, _ := strings.Cut(addr, ":")
	p = b.launch(name, syscall.SIGTERM, nil,
		bin, "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", b.work)
	b.await(p, func() { must(net.Dial("tcp", addr)).Close() })
	return p, "redis://" + addr, version
}

// notRoot says how to start a program that refuses to run as root, or is nil if we
// aren't root.
func notRoot() *syscall.SysProcAttr {
	if os.Getuid() != 0 {
		return nil
	}
	nobody := must(user.Lookup("nobody"))
	uid, gid := must(strconv.ParseUint(nobody.Uid, 10, 32)), must(strconv.ParseUint(nobody.Gid, 10, 32))
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}
