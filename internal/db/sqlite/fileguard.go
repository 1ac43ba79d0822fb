package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"time"

	"animalstore/internal/db"
)

// guardInterval is how often a server checks its files while it is idle.
const guardInterval = time.Second

// fileGuard stops a server whose database file or WAL was removed or replaced. SQLite
// would keep using the old files, and everything written to them would be gone when the
// server stops.
type fileGuard struct {
	path  string
	files map[string]fs.FileInfo // by path, as they were at the start
	fatal func(error)
	stop  chan struct{}
	done  chan struct{}
}

// startFileGuard must be called after a connection has created the WAL.
func startFileGuard(path string, fatal func(error)) (*fileGuard, error) {
	g := &fileGuard{path: path, files: map[string]fs.FileInfo{}, fatal: fatal, stop: make(chan struct{}), done: make(chan struct{})}
	for _, name := range []string{path, path + "-wal"} {
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		g.files[name] = info
	}
	go g.run()
	return g, nil
}

// close must be called before the connections are closed: the last one removes the WAL.
func (g *fileGuard) close() {
	close(g.stop)
	<-g.done
}

func (g *fileGuard) run() {
	defer close(g.done)
	tick := time.NewTicker(guardInterval)
	defer tick.Stop()
	for {
		select {
		case <-g.stop:
			return
		case <-tick.C:
		}
		for name := range g.files {
			if err := g.check(name); err != nil {
				g.fatal(err)
				return
			}
		}
	}
}

// check returns an error if a file was removed or replaced.
func (g *fileGuard) check(name string) error {
	if runtime.GOOS == "windows" { // an open file can't be removed or replaced there
		return nil
	}
	switch info, err := os.Stat(name); {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s was removed or renamed while the server was using it", name)
	case err != nil: // says nothing about the file
	case !os.SameFile(g.files[name], info):
		return fmt.Errorf("%s was replaced by another file while the server was using it", name)
	}
	return nil
}

// checkWAL is for the writer, which must not acknowledge a commit to a WAL that is gone.
func (g *fileGuard) checkWAL() error {
	if err := g.check(g.path + "-wal"); err != nil {
		g.fatal(err)
		return fmt.Errorf("%w: %w", db.ErrOutcomeUnknown, err)
	}
	return nil
}
