package main

import (
	"context"
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

	"animalstore"
)

// startOnPostgres starts the release build on PostgreSQL and Redis servers of
// its own. Their processor time counts as its own.
func startOnPostgres(ctx context.Context, s *site) (*entrant, error) {
	help, err := exec.CommandContext(ctx, s.release, "serve", "--help").CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", help, err)
	}
	for _, need := range []string{"postgres://", "--redis"} {
		if !strings.Contains(string(help), need) {
			return nil, skipped{fmt.Errorf("this build's serve --help tells nothing of %s", need)}
		}
	}
	pg, err := startPostgres(ctx, s)
	if err != nil {
		return nil, err
	}
	redis, redisURL, err := startRedis(ctx, s)
	if err != nil {
		pg.stop()
		return nil, err
	}
	server, err := start(ctx, s.work, "postgres", pg.key, firstPage, func(addr string) []string {
		return []string{s.release, "serve", "--listen", addr, "--database", pg.url, "--redis", redisURL}
	})
	if err != nil {
		redis.stop()
		pg.stop()
		return nil, err
	}
	server.behind = []*process{redis, pg.process}
	redisVersion, err := firstLine(ctx, "redis-server", "--version")
	redisVersion, _, _ = strings.Cut(redisVersion, " sha")
	return &entrant{server, ourAPI, fmt.Sprintf("the release build on PostgreSQL %s (fsync and synchronous_commit on, shared_buffers=256MB) and %s", pg.version, redisVersion), false}, err
}

// postgres is a PostgreSQL server with a seeded database of ours.
type postgres struct {
	*process
	bin, url, key, version string
	as                     *syscall.SysProcAttr
}

// startPostgres starts a server on a copy of a seeded cluster, which it makes
// where there is none.
func startPostgres(ctx context.Context, s *site) (*postgres, error) {
	bin, err := postgresPrograms()
	if err != nil {
		return nil, skipped{err}
	}
	pg := &postgres{bin: bin}
	if pg.as, err = notRoot(); err != nil {
		return nil, err
	}
	version, err := firstLine(ctx, filepath.Join(pg.bin, "postgres"), "--version")
	if err != nil {
		return nil, err
	}
	pg.version = strings.Fields(strings.TrimPrefix(version, "postgres (PostgreSQL) "))[0]
	schema, err := fingerprint(filepath.Join(s.root, "internal", "db", "postgres"))
	if err != nil {
		return nil, err
	}
	kept, err := s.cached(fmt.Sprintf("postgres-%s-%d-%s", pg.version, s.animals, schema), func(part string) error {
		return pg.make(ctx, s, part)
	})
	if err != nil {
		return nil, err
	}
	data := filepath.Join(s.work, "postgres")
	// Nobody else could reach its own files there otherwise.
	if err := errors.Join(os.Chmod(s.work, 0o711), copyTree(ctx, data, kept)); err != nil {
		return nil, err
	}
	if err := pg.run(ctx, s, data); err != nil {
		return nil, err
	}
	if pg.key, err = makeKey(ctx, s.release, pg.url); err != nil {
		pg.stop()
	}
	return pg, err
}

// postgresPrograms is where PostgreSQL's are, server and client. Distributions
// keep them apart by version, and may link a few from elsewhere.
func postgresPrograms() (dir string, err error) {
	servers, err := filepath.Glob("/usr/lib/postgresql/*/bin/postgres")
	if err != nil {
		return "", err
	}
	if path, err := exec.LookPath("postgres"); err == nil {
		servers = append([]string{path}, servers...)
	}
	for _, server := range slices.Backward(servers) {
		complete := true
		for _, program := range []string{"initdb", "psql"} {
			_, err := os.Stat(filepath.Join(filepath.Dir(server), program))
			complete = complete && err == nil
		}
		if complete {
			return filepath.Dir(server), nil
		}
	}
	return "", errors.New("no PostgreSQL here with postgres, initdb and psql in one place: install the package postgresql")
}

// make makes a cluster with animals in it.
func (pg *postgres) make(ctx context.Context, s *site, data string) error {
	if err := os.Mkdir(data, 0o700); err != nil {
		return err
	}
	if pg.as != nil {
		if err := os.Chown(data, int(pg.as.Credential.Uid), int(pg.as.Credential.Gid)); err != nil {
			return err
		}
	}
	initdb := exec.CommandContext(ctx, filepath.Join(pg.bin, "initdb"), "-D", data, "-U", "bench", "-A", "trust", "-E", "UTF8", "--locale=C")
	initdb.SysProcAttr, initdb.Dir = pg.as, "/"
	if out, err := initdb.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	if err := pg.run(ctx, s, data); err != nil {
		return err
	}
	defer pg.stop()
	if _, err := makeKey(ctx, s.release, pg.url); err != nil { // makes the tables, too
		return err
	}
	return pg.fill(ctx, s.animals)
}

// run starts the server on data.
func (pg *postgres) run(ctx context.Context, s *site, data string) (err error) {
	addr, err := freeAddr()
	if err != nil {
		return err
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return err
	}
	pg.url = "postgres://bench@" + addr + "/postgres?sslmode=disable"
	// A quick shutdown: a slow one would wait for clients.
	pg.process, err = launch(ctx, s.work, "postgresql", os.Interrupt, []string{
		filepath.Join(pg.bin, "postgres"), "-D", data, "-p", port,
		"-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=",
		"-c", "fsync=on", "-c", "synchronous_commit=on", "-c", "full_page_writes=on",
		"-c", "shared_buffers=256MB", "-c", "max_wal_size=2GB",
	}, pg.as)
	if err != nil {
		return err
	}
	never := func(error) bool { return false }
	return pg.await(ctx, never, func() error {
		_, err := pg.query(ctx, "SELECT 1")
		return err
	})
}

// fill copies animals into the table that ours made. How it stores a status, as
// a word or as a number, the table tells.
func (pg *postgres) fill(ctx context.Context, n int) error {
	kind, err := pg.query(ctx, "SELECT data_type FROM information_schema.columns WHERE table_name = 'pets' AND column_name = 'status'")
	if err != nil {
		return err
	}
	status := inWords
	if strings.HasSuffix(kind, "int") || kind == "integer" {
		status = func(s animalstore.PetStatus) string { return strconv.Itoa(slices.Index(statuses, s)) }
	}
	load := exec.CommandContext(ctx, filepath.Join(pg.bin, "psql"), "-q", "-v", "ON_ERROR_STOP=1", "-d", pg.url,
		"-c", "COPY pets (name, category_id, status) FROM STDIN", "-c", "VACUUM ANALYZE pets")
	rows, err := load.StdinPipe()
	if err != nil {
		return err
	}
	var out strings.Builder
	load.Stdout, load.Stderr = &out, &out
	if err := load.Start(); err != nil {
		return err
	}
	if err := errors.Join(writeAnimals(rows, n, status), rows.Close(), load.Wait()); err != nil {
		return fmt.Errorf("copy animals into PostgreSQL: %w\n%s", err, out.String())
	}
	return nil
}

func (pg *postgres) query(ctx context.Context, sql string) (string, error) {
	out, err := exec.CommandContext(ctx, filepath.Join(pg.bin, "psql"), "-qAt", "-d", pg.url, "-c", sql).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return strings.TrimSpace(string(out)), nil
}

// startRedis starts a Redis that keeps nothing: what must survive of limits is
// in the database, too.
func startRedis(ctx context.Context, s *site) (p *process, url string, err error) {
	bin, err := exec.LookPath("redis-server")
	if err != nil {
		return nil, "", skipped{fmt.Errorf("no Redis server here: install the package redis-server (%w)", err)}
	}
	addr, err := freeAddr()
	if err != nil {
		return nil, "", err
	}
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, "", err
	}
	p, err = launch(ctx, s.work, "redis", syscall.SIGTERM, []string{
		bin, "--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", s.work,
	}, nil)
	if err != nil {
		return nil, "", err
	}
	never := func(error) bool { return false }
	err = p.await(ctx, never, func() error {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			conn.Close()
		}
		return err
	})
	return p, "redis://" + addr, err
}

// notRoot is how to start what refuses to run as root, or nil where we are not.
func notRoot() (*syscall.SysProcAttr, error) {
	if os.Getuid() != 0 {
		return nil, nil
	}
	nobody, err := user.Lookup("nobody")
	if err != nil {
		return nil, err
	}
	uid, err1 := strconv.ParseUint(nobody.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(nobody.Gid, 10, 32)
	return &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}, errors.Join(err1, err2)
}

func firstLine(ctx context.Context, name string, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, name, args...).Output()
	line, _, _ := strings.Cut(string(out), "\n")
	return strings.TrimSpace(line), err
}
