package main

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

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
	return &entrant{server, pocketBaseAPI, "PocketBase " + version + ", WAL and synchronous=FULL, its own records API, an auth token a request", true}, err
}

func goModuleVersion(ctx context.Context, dir, module string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Version}}", module)
	cmd.Dir = dir
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}
