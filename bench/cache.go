package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// cached is the path of a file or directory that is kept between runs. If it
// doesn't exist, fill creates it at the path it is given. The name must reflect
// everything that its contents depend on.
func (b *bench) cached(name string, fill func(part string)) string {
	dir := filepath.Join(b.dir, "animalstore-bench-cache")
	// Other users may pass through: PostgreSQL doesn't run as root.
	check(errors.Join(os.MkdirAll(dir, 0o711), os.Chmod(dir, 0o711)))
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		check(err)
		return path
	}
	progress("creating %s for this run and later ones", path)
	part := path + ".part"
	check(os.RemoveAll(part))
	defer os.RemoveAll(part)
	fill(part)
	check(os.Rename(part, path))
	return path
}

// readAhead gets a file into the system's page cache: the disk isn't what is
// measured.
func readAhead(path string) {
	f := must(os.Open(path))
	defer f.Close()
	must(io.Copy(io.Discard, f))
}

// copyTree copies a file or a directory with owners and modes, and syncs it to
// disk: later writes must not wait for it.
func (b *bench) copyTree(to, from string) {
	b.output("", "cp", "-a", from, to)
	b.output("", "sync", "-f", to)
}

// fingerprint identifies the contents of files and directories below root. It is
// part of the names of what is cached.
func fingerprint(root string, paths ...string) string {
	sum := sha256.New()
	for _, path := range paths {
		check(filepath.WalkDir(filepath.Join(root, path), func(file string, entry fs.DirEntry, err error) error {
			if err == nil && entry.Type().IsRegular() {
				text := must(os.ReadFile(file))
				fmt.Fprintf(sum, "%s %d\n%s", file[len(root):], len(text), text)
			}
			return err
		}))
	}
	return fmt.Sprintf("%x", sum.Sum(nil))[:12]
}
