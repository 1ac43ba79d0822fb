package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"animalstore"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/keys"
)

// entrant is a running server, and how it is asked.
type entrant struct {
	*server
	api   api
	about string // versions and settings, for whoever reads the results
}

// site is where contestants are built and started.
type site struct {
	options
	work    string
	root    string // of this module's source
	release string // our server, as it is released
}

func newSite(ctx context.Context, o options, work string) (*site, error) {
	root, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return nil, fmt.Errorf("find this module's source: %w", err)
	}
	release, err := build(ctx, work, "release")
	return &site{o, work, strings.TrimSpace(string(root)), release}, err
}

func (s *site) peer(name string) string { return filepath.Join(s.root, "bench", "peers", name) }

// skipped is why a contestant cannot take part here.
type skipped struct{ error }

// others are who may race with ours, beside the bare server. A benchmark
// without one of them still tells something, so one that cannot be built or run
// here is left out with a word.
var others = []struct {
	name  string
	start func(context.Context, *site) (*entrant, error)
}{
	{"postgres", startOnPostgres},
	{"pocketbase", startPocketBase},
	{"fastify", startFastify},
}

// manyKeys is how many keys ours knows.
const manyKeys = 10_000

// startOurs starts the release build on SQLite, on a copy of a seeded store
// that knows many keys. Their secrets are in a file.
func startOurs(ctx context.Context, s *site) (ours *entrant, keysFile string, err error) {
	seed, err := seeded(ctx, s.options, s.work, "animals", s.animals)
	if err != nil {
		return nil, "", err
	}
	file := filepath.Join(s.work, "ours.db")
	if err := copyTree(ctx, file, seed); err != nil {
		return nil, "", err
	}
	secrets, err := addKeys(ctx, file)
	if err != nil {
		return nil, "", err
	}
	keysFile = filepath.Join(s.work, "keys")
	if err := os.WriteFile(keysFile, []byte(strings.Join(secrets, "\n")+"\n"), 0o600); err != nil {
		return nil, "", err
	}
	database := "sqlite:" + file
	key, err := makeKey(ctx, s.release, database)
	if err != nil {
		return nil, "", err
	}
	server, err := serve(ctx, s.work, "ours", s.release, database, key)
	if err != nil {
		return nil, "", err
	}
	return &entrant{server, ourAPI, "the release build with default flags, SQLite"}, keysFile, nil
}

// addKeys makes many keys, dozens at a time so that they share commits, and
// returns their secrets.
func addKeys(ctx context.Context, path string) ([]string, error) {
	say("adding %d keys", manyKeys)
	db, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return nil, err
	}
	key := animalstore.NewKey{
		Name:        "bench",
		Plan:        animalstore.PlanEnterprise,
		Limits:      animalstore.Limits{PerMinute: 1_000_000_000, PerDay: 1_000_000_000},
		Permissions: animalstore.Read | animalstore.Write,
		Environment: animalstore.Production,
	}
	secrets := make([]string, manyKeys)
	const dozens = 64
	var failed [dozens]error
	var adding sync.WaitGroup
	for first := range dozens {
		adding.Go(func() {
			for i := first; i < manyKeys && failed[first] == nil; i += dozens {
				secrets[i] = keys.Mint(key.Environment)
				_, failed[first] = db.CreateKey(ctx, key, keys.Hash(secrets[i]), animalstore.Time{})
			}
		})
	}
	adding.Wait()
	return secrets, errors.Join(errors.Join(failed[:]...), db.Close())
}

// startPocketBase starts PocketBase, whose module may ask for a newer Go than
// there is.
func startPocketBase(ctx context.Context, s *site) (*entrant, error) {
	dir := s.peer("pocketbase")
	id, err := fingerprint(dir)
	if err != nil {
		return nil, err
	}
	bin, err := s.cached("pocketbase-"+id, func(part string) error {
		return goBuild(ctx, dir, "pocketbase", part, "-s -w", ".")
	})
	if err != nil {
		return nil, skipped{err}
	}
	data, key, err := s.seedPeer(ctx, fmt.Sprintf("pocketbase-%s-%d", id, s.animals), func(dir string) []string {
		return []string{bin, "seed", dir}
	})
	if err != nil {
		return nil, err
	}
	server, err := start(ctx, s.work, "pocketbase", key, pocketBaseAPI.list(page{limit: 20}), func(addr string) []string {
		return []string{bin, "serve", data, addr}
	})
	if err != nil {
		return nil, err
	}
	version, err := goModuleVersion(ctx, dir, "github.com/pocketbase/pocketbase")
	return &entrant{server, pocketBaseAPI, "PocketBase " + version + ", WAL and synchronous=FULL, its own records API, an auth token a request"}, err
}

// startFastify starts Fastify, with a process for each core.
func startFastify(ctx context.Context, s *site) (*entrant, error) {
	for _, tool := range []string{"node", "npm"} {
		if _, err := exec.LookPath(tool); err != nil {
			return nil, skipped{fmt.Errorf("install %s: %w", tool, err)}
		}
	}
	source := s.peer("fastify")
	id, err := fingerprint(source)
	if err != nil {
		return nil, err
	}
	version, err := exec.CommandContext(ctx, "node", "--version").Output()
	if err != nil {
		return nil, err
	}
	node := strings.TrimSpace(string(version))
	// Away from the source: among its packages are some in Go, which go vet would
	// take for ours.
	app, err := s.cached(fmt.Sprintf("fastify-%s-%s", id, node), func(part string) error {
		if err := copyTree(ctx, part, source); err != nil {
			return err
		}
		say("installing fastify and compiling better-sqlite3, which can take minutes")
		install := exec.CommandContext(ctx, "npm", "ci", "--no-audit", "--no-fund")
		install.Dir = part
		if out, err := install.CombinedOutput(); err != nil {
			return fmt.Errorf("npm ci: %w\n%s", err, out)
		}
		// npm may leave out the step that builds it, and say no more than a warning.
		try := exec.CommandContext(ctx, "node", "-e", "new (require('better-sqlite3'))(':memory:')")
		try.Dir = part
		if out, err := try.CombinedOutput(); err != nil {
			return fmt.Errorf("better-sqlite3 was not built: %w\n%s", err, out)
		}
		return nil
	})
	if err != nil {
		return nil, skipped{err}
	}
	data, key, err := s.seedPeer(ctx, fmt.Sprintf("fastify-%s-%d", id, s.animals), func(dir string) []string {
		return []string{"node", filepath.Join(app, "seed.js"), dir}
	})
	if err != nil {
		return nil, err
	}
	server, err := start(ctx, s.work, "fastify", key, firstPage, func(addr string) []string {
		return []string{"node", filepath.Join(app, "server.js"), data, addr, fmt.Sprint(runtime.NumCPU())}
	})
	if err != nil {
		return nil, err
	}
	text, err := os.ReadFile(filepath.Join(source, "package.json"))
	if err != nil {
		return nil, err
	}
	var pkg struct{ Dependencies map[string]string }
	if err := json.Unmarshal(text, &pkg); err != nil {
		return nil, err
	}
	return &entrant{server, plainAPI, fmt.Sprintf("Fastify %s, better-sqlite3 %s, Node %s, WAL and synchronous=FULL, a process for each of %d cores",
		pkg.Dependencies["fastify"], pkg.Dependencies["better-sqlite3"], node, runtime.NumCPU())}, nil
}

// seedPeer has a contestant's own command fill a file or directory with animals
// and print a key. It returns a copy of that, which belongs to this run.
func (s *site) seedPeer(ctx context.Context, name string, command func(path string) []string) (path, key string, err error) {
	kept, err := s.cached(name, func(part string) error {
		if err := os.Mkdir(part, 0o700); err != nil {
			return err
		}
		args := command(filepath.Join(part, "data"))
		cmd := exec.CommandContext(ctx, args[0], args[1:]...)
		rows, err := cmd.StdinPipe()
		if err != nil {
			return err
		}
		var out, stderr strings.Builder
		cmd.Stdout, cmd.Stderr = &out, &stderr
		if err := cmd.Start(); err != nil {
			return err
		}
		err = errors.Join(writeAnimals(rows, s.animals, inWords), rows.Close(), cmd.Wait())
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, stderr.String())
		}
		return os.WriteFile(filepath.Join(part, "key"), []byte(out.String()), 0o600)
	})
	if err != nil {
		return "", "", err
	}
	path = filepath.Join(s.work, name)
	if err := copyTree(ctx, path, kept); err != nil {
		return "", "", err
	}
	text, err := os.ReadFile(filepath.Join(path, "key"))
	return filepath.Join(path, "data"), strings.TrimSpace(string(text)), err
}

func goModuleVersion(ctx context.Context, dir, module string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", module)
	cmd.Dir = dir
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}
