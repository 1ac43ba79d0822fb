package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// startOnPostgres starts the release build on its own PostgreSQL and Redis. Their
// processor time counts as its own.
func startOnPostgres(b *bench) *server {
	pg := findPostgres(b)
	schema := fingerprint(b.root, "internal/db/postgres/migrations", "internal/sample", "bench/seed.go")
	seeded := b.cached(fmt.Sprintf("postgres-%s-%d-%s", pg.version, b.pets, schema), pg.create)
	data := filepath.Join(b.work, "postgres")
	b.copyTree(data, seeded)
	database, url := pg.run(data)
	redis, redisURL, redisVersion := b.startRedis()
	s := b.withKeys("postgres", url, b.pets, 1)
	s.backends = []*process{database, redis}
	s.about = fmt.Sprintf("the release build on PostgreSQL %s (fsync and synchronous_commit on, shared_buffers=256MB) and %s", pg.version, redisVersion)
	return b.startBuild(s, b.release, url, "--redis", redisURL)
}

// postgres is an installation of PostgreSQL.
type postgres struct {
	*bench
	bin, version string
	as           *syscall.SysProcAttr // the user to run as
}

// findPostgres finds a directory with PostgreSQL's server and client.
// Distributions have one for each version, and may link a few programs from
// elsewhere.
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
func (pg *postgres) create(data string) {
	check(os.Mkdir(data, 0o700))
	if pg.as != nil {
		check(os.Chown(data, int(pg.as.Credential.Uid), int(pg.as.Credential.Gid)))
	}
	initdb := exec.CommandContext(pg.ctx, filepath.Join(pg.bin, "initdb"), "-D", data, "-U", "bench", "-A", "trust", "-E", "UTF8", "--locale=C")
	initdb.SysProcAttr, initdb.Dir = pg.as, "/"
	must(firstLineOf(initdb))
	running, url := pg.run(data)
	defer running.stop()
	pg.seed(url, pg.pets, false)
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
		"-c", "shared_buffers=256MB", "-c", "max_wal_size=2GB")
	p.await(func() error { return attempt(func() { pg.execute(url, "SELECT 1") }) }, pg.goesOn)
	return p, url
}

func (pg *postgres) execute(url, statement string) {
	pg.output("", filepath.Join(pg.bin, "psql"), "-q", "-d", url, "-c", statement)
}

// startRedis starts a Redis that stores nothing: what must survive of limits is
// in the database as well.
func (b *bench) startRedis() (p *process, url, version string) {
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		check(unavailableError{fmt.Errorf("there is no Redis server: install the package redis-server (%w)", err)})
	}
	version, _, _ = strings.Cut(b.output("", bin, "--version"), " sha")
	addr := freeAddr()
	_, port, _ := strings.Cut(addr, ":")
	p = b.launch("redis", syscall.SIGTERM, nil,
		bin, "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", b.work)
	p.await(func() error {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
		}
		return err
	}, b.goesOn)
	return p, "redis://" + addr, version
}

// notRoot is how to start a program that refuses to run as root, or nil if we
// aren't root.
func notRoot() *syscall.SysProcAttr {
	if os.Getuid() != 0 {
		return nil
	}
	nobody := must(user.Lookup("nobody"))
	uid, gid := must(strconv.ParseUint(nobody.Uid, 10, 32)), must(strconv.ParseUint(nobody.Gid, 10, 32))
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
}
