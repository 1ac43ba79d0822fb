package main

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

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
	app, err := s.installFastify(ctx, source, node)
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
		pkg.Dependencies["fastify"], pkg.Dependencies["better-sqlite3"], node, runtime.NumCPU()), true}, nil
}

// installFastify installs the packages that source names, once, and puts its
// programs beside them. That is away from the source tree: among the packages is
// some Go, which go vet would take for ours.
func (s *site) installFastify(ctx context.Context, source, node string) (app string, err error) {
	lock, err := os.ReadFile(filepath.Join(source, "package-lock.json"))
	if err != nil {
		return "", err
	}
	app, err = s.cached(fmt.Sprintf("fastify-%.12x-%s", sha256.Sum256(lock), node), func(part string) error {
		if err := copyTree(ctx, part, source); err != nil {
			return err
		}
		say("installing fastify and compiling better-sqlite3, which can take minutes")
		for _, args := range [][]string{
			{"npm", "ci", "--no-audit", "--no-fund"},
			// npm may leave out the step that builds it, with no more than a warning.
			{"node", "--input-type=commonjs", "-e", "new (require('better-sqlite3'))(':memory:')"},
		} {
			cmd := exec.CommandContext(ctx, args[0], args[1:]...)
			cmd.Dir = part
			if out, err := cmd.CombinedOutput(); err != nil {
				return fmt.Errorf("%s: %w\n%s", strings.Join(args, " "), err, out)
			}
		}
		return nil
	})
	if err != nil {
		return "", err
	}
	programs, err := filepath.Glob(filepath.Join(source, "*.js"))
	if err != nil {
		return "", err
	}
	for _, program := range programs {
		if err := copyTree(ctx, filepath.Join(app, filepath.Base(program)), program); err != nil {
			return "", err
		}
	}
	return app, nil
}
