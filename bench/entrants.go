package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	peer  bool   // somebody else's work
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
	{"axum", startAxum},
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
	return &entrant{server, ourAPI, "the release build with default flags, SQLite", false}, keysFile, nil
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
