package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// startAxum starts axum with rusqlite.
func startAxum(ctx context.Context, s *site) (*entrant, error) {
	if _, err := exec.LookPath("cargo"); err != nil {
		return nil, skipped{fmt.Errorf("install Rust: %w", err)}
	}
	source := s.peer("axum")
	id, err := fingerprint(source)
	if err != nil {
		return nil, err
	}
	bin, err := s.cached("axum-"+id, func(part string) error {
		say("compiling axum and SQLite, which can take minutes")
		target := part + ".target"
		build := exec.CommandContext(ctx, "cargo", "build", "--release", "--locked", "--quiet",
			"--manifest-path", filepath.Join(source, "Cargo.toml"), "--target-dir", target)
		if out, err := build.CombinedOutput(); err != nil {
			return errors.Join(fmt.Errorf("cargo build: %w\n%s", err, out), os.RemoveAll(target))
		}
		return errors.Join(os.Rename(filepath.Join(target, "release", "animalstore-bench-axum"), part), os.RemoveAll(target))
	})
	if err != nil {
		return nil, skipped{err}
	}
	data, key, err := s.seedPeer(ctx, fmt.Sprintf("axum-%s-%d", id, s.animals), func(file string) []string {
		return []string{bin, "seed", file}
	})
	if err != nil {
		return nil, err
	}
	server, err := start(ctx, s.work, "axum", key, firstPage, func(addr string) []string {
		return []string{bin, "serve", data, addr}
	})
	if err != nil {
		return nil, err
	}
	manifest, err := os.ReadFile(filepath.Join(source, "Cargo.toml"))
	if err != nil {
		return nil, err
	}
	versions := regexp.MustCompile(`(?m)^(axum|rusqlite) = .*"=([0-9.]+)"`).FindAllStringSubmatch(string(manifest), -1)
	var named []string
	for _, v := range versions {
		named = append(named, v[1]+" "+v[2])
	}
	return &entrant{server, plainAPI, strings.Join(named, ", ") + ", WAL and synchronous=FULL, a thread for each core", true}, nil
}
