package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
)

// cached is the path of a file or directory that is kept between runs. What
// fill leaves at the path it is given becomes it, or nothing does. The name
// must tell everything that what is kept depends on.
func (o options) cached(name string, fill func(part string) error) (string, error) {
	dir := filepath.Join(o.dir, "animalstore-bench-cache")
	// Others may pass through: PostgreSQL runs as somebody else.
	if err := errors.Join(os.MkdirAll(dir, 0o711), os.Chmod(dir, 0o711)); err != nil {
		return "", err
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return path, err
	}
	say("making %s, once", path)
	part := path + ".part"
	if err := os.RemoveAll(part); err != nil {
		return "", err
	}
	if err := fill(part); err != nil {
		return "", errors.Join(err, os.RemoveAll(part))
	}
	return path, os.Rename(part, path)
}

// warm reads a file or a directory's files, so that they are in memory as far as
// that goes: the disk is not what is measured.
func warm(path string) error {
	return filepath.WalkDir(path, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(io.Discard, f)
		return err
	})
}

// copyTree copies a file or a directory with owners and modes, to disk: what is
// written later must not wait for it.
func copyTree(ctx context.Context, to, from string) error {
	for _, args := range [][]string{{"cp", "-a", from, to}, {"sync", "-f", to}} {
		if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
			return fmt.Errorf("copy %s: %w\n%s", from, err, out)
		}
	}
	return nil
}

// fingerprint tells one state of the files in and below a directory from another.
func fingerprint(dir string) (string, error) {
	sum := sha256.New()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(sum, "%s %d\n%s", path[len(dir):], len(text), text)
		return nil
	})
	return fmt.Sprintf("%x", sum.Sum(nil))[:12], err
}
