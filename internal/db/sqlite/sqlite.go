// Package sqlite keeps the store in one SQLite file.
//
// All writes go through one goroutine that commits everything queued at once
// and answers each caller after the commit is on disk (writer.go). Reads have
// connections of their own and never wait for a writer.
package sqlite

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitemigration"
	"zombiezen.com/go/sqlite/sqlitex"
)

// busyTimeout is how long a statement waits for another process, such as a
// command that manages keys beside the server.
const busyTimeout = 5 * time.Second

//go:embed schema.sql
var schema1 string

// schema may only ever grow at its end: its length is the file's version.
var schema = sqlitemigration.Schema{
	AppID:      0x414e5354, // "ANST"
	Migrations: []string{schema1},
}

// Options say how a file is opened.
type Options struct {
	// Serve makes this process the file's one server until Close. Opening
	// fails while another process is.
	Serve bool
	// MustExist refuses to make a new file.
	MustExist bool
	// Fatal is called once on an I/O error, after which nothing that was read
	// from or written to the file can be trusted, and must end the process.
	// Nil panics.
	Fatal func(error)
	// Tuning is for tests and benchmarks. A release uses its zero value.
	Tuning Tuning
}

// Tuning takes something away from a database, so that tests and benchmarks can
// show the difference it makes. No flag and no variable may set it.
type Tuning struct {
	// NoSync commits without waiting for the disk: a power cut loses writes
	// that were acknowledged.
	NoSync bool
	// MaxBatch is the number of writes in one transaction. Zero is 1024.
	MaxBatch int
}

func (t Tuning) synchronous() string {
	if t.NoSync {
		return "NORMAL"
	}
	return "FULL"
}

// DB is a [db.DB] in a SQLite file.
type DB struct {
	path    string
	lock    *os.File // held while serving; else nil
	fatal   func(error)
	tuning  Tuning
	readers chan *reader
	nread   int         // readers made
	moving  atomic.Bool // the log is being moved into the file
	writer  *writer
	pets    *petCache // while serving: others change pets otherwise; else nil
	closing sync.Once
	closed  chan struct{} // closed to refuse further reads
}

var _ db.DB = (*DB)(nil)

// Open opens the file at path, makes it if need be, and brings its tables up
// to date. It refuses, with a message that says why, a file that is no SQLite
// database, belongs to another program, was written by a newer animalstore, or
// is served by another process (if opts.Serve).
func Open(ctx context.Context, path string, opts Options) (_ *DB, err error) {
	if err := checkVersion(); err != nil {
		return nil, err
	}
	if opts.Fatal == nil {
		opts.Fatal = func(err error) { panic(err) }
	}
	// An absolute path is always a file: SQLite gives "" and ":memory:" a
	// meaning of their own.
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	d := &DB{path: path, fatal: opts.Fatal, tuning: opts.Tuning, closed: make(chan struct{})}
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	if err := makeFile(path, opts.MustExist); err != nil {
		return nil, err
	}
	// One file has one lock, whatever links lead to it.
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return nil, err
	}
	d.path = path
	if err := checkOurs(path); err != nil {
		return nil, explain(path, err)
	}
	if opts.Serve {
		if d.lock, err = lockFile(path + ".lock"); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
	}
	conn, err := d.connect()
	if err != nil {
		return nil, explain(path, err)
	}
	d.writer = startWriter(conn, d.fatal, cmp.Or(opts.Tuning.MaxBatch, maxBatch))
	if err := sqlitemigration.Migrate(ctx, conn, schema); err != nil {
		return nil, explain(path, err)
	}
	nread := 1
	if opts.Serve {
		nread = max(4, 2*runtime.GOMAXPROCS(0))
		d.pets = new(petCache)
		// A server that stopped on a failed write may have left frames in the
		// log that the system believes written and the disk does not hold.
		// Moving them all into the database writes each of them anew.
		if err := d.writer.checkpoint("TRUNCATE"); err != nil {
			return nil, explain(path, err)
		}
	}
	d.readers = make(chan *reader, nread)
	for d.nread < nread {
		r, err := d.newReader()
		if err != nil {
			return nil, explain(path, err)
		}
		d.readers <- r
		d.nread++
	}
	d.writer.letGo = d.letGo
	return d, nil
}

// Close waits for the reads and writes under way and leaves one tidy file
// behind. What comes afterwards gets an error.
func (d *DB) Close() (err error) {
	d.closing.Do(func() {
		close(d.closed)
		var errs []error
		for range d.nread {
			errs = append(errs, (<-d.readers).close())
		}
		if d.writer != nil {
			errs = append(errs, d.writer.close())
		}
		if d.lock != nil {
			errs = append(errs, d.lock.Close())
		}
		err = errors.Join(errs...)
	})
	return err
}

// Ping implements [db.DB].
func (d *DB) Ping(ctx context.Context) error {
	return d.read(ctx, func(c *sqlite.Conn) error {
		return sqlitex.Execute(c, "SELECT 1 FROM sqlite_schema LIMIT 1", nil)
	})
}

// Generation implements [db.DB]. The writer makes the number odd while it
// commits.
func (d *DB) Generation() (uint64, bool) {
	g := d.writer.generation.Load()
	return g, g%2 == 0
}

// cachePages are enough for what leads to the other pages in a store of millions.
// The others are in the system's memory: to fetch one from there is faster than to
// walk through a cache too large for the processor's.
const cachePages = "200"

func (d *DB) connect() (*sqlite.Conn, error) {
	c, err := sqlite.OpenConn(d.path, sqlite.OpenReadWrite)
	if err != nil {
		return nil, err
	}
	c.SetBusyTimeout(busyTimeout)
	for _, pragma := range []string{
		"PRAGMA journal_mode = WAL",
		"PRAGMA synchronous = " + d.tuning.synchronous(),
		"PRAGMA foreign_keys = ON",
		"PRAGMA temp_store = MEMORY",
		"PRAGMA cache_size = " + cachePages,
		// SQLite would do it by itself and keep a failure to itself.
		"PRAGMA wal_autocheckpoint = 0",
	} {
		if err := sqlitex.ExecuteTransient(c, pragma, nil); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

// checkOurs refuses a file that is another program's or a newer version's. It
// comes before anything that would write to the file.
func checkOurs(path string) error {
	// Whoever closes a file last moves its log into it, unless only reading.
	err := checkOursBy(path, sqlite.OpenReadOnly)
	if sqlite.ErrCode(err).ToPrimary() == sqlite.ResultReadOnly {
		// A change was cut off half way and has to be undone before a read.
		err = checkOursBy(path, sqlite.OpenReadWrite)
	}
	return err
}

func checkOursBy(path string, access sqlite.OpenFlags) error {
	c, err := sqlite.OpenConn(path, access)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetBusyTimeout(busyTimeout)
	var version, appID, tables int
	for query, n := range map[string]*int{
		"PRAGMA user_version":                &version,
		"PRAGMA application_id":              &appID,
		"SELECT count(*) FROM sqlite_schema": &tables,
	} {
		stmt, err := c.Prepare(query) // fails where the file is no database
		if err != nil {
			return err
		}
		if *n, err = sqlitex.ResultInt(stmt); err != nil {
			return err
		}
	}
	known := len(schema.Migrations)
	switch {
	case appID != int(schema.AppID) && (appID != 0 || tables > 0):
		return errors.New("this is a SQLite database, but not one of animalstore's. Name another file with --database")
	case version > known:
		return fmt.Errorf("this file was written by a newer animalstore (its tables are version %d, this program knows up to %d). Run that version", version, known)
	}
	return nil
}

// makeFile makes an empty file that only its owner can read, unless there is
// one. SQLite gives the files it makes beside it the same mode.
func makeFile(path string, mustExist bool) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("%s is a directory: name a file", path)
	case err == nil:
		return nil
	case !errors.Is(err, os.ErrNotExist):
		return err
	case mustExist:
		return fmt.Errorf("%s does not exist: name the server's database with --database", path)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) { // somebody else made it just now
		return nil
	}
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("the directory %s does not exist: make it first", filepath.Dir(path))
	}
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("%s cannot be made: give the user that runs this the right to write to its directory", path)
	}
	if err != nil {
		return err
	}
	return f.Close()
}

// checkVersion refuses a SQLite that can corrupt a database when it resets the
// write-ahead log, which was mended in 3.51.3.
func checkVersion() error {
	if sqlite.VersionNumber < 3_051_003 {
		return fmt.Errorf("built with SQLite %s: at least 3.51.3 is needed", sqlite.Version)
	}
	return nil
}

// explain says in the operator's words why a file could not be opened.
func explain(path string, err error) error {
	switch sqlite.ErrCode(err).ToPrimary() {
	case sqlite.ResultNotADB:
		return fmt.Errorf("%s is not a SQLite database. Name another file with --database", path)
	case sqlite.ResultReadOnly, sqlite.ResultPerm, sqlite.ResultCantOpen:
		return fmt.Errorf("%s cannot be opened for writing: check its permissions and those of its directory (%w)", path, err)
	case sqlite.ResultFull:
		return fmt.Errorf("%s cannot be opened, because its disk is full: make room and try again (%w)", path, err)
	}
	return fmt.Errorf("%s: %w", path, err)
}

// classify turns what SQLite says into what [db.DB] promises.
func classify(err error) error {
	if err == nil {
		return nil
	}
	switch code := sqlite.ErrCode(err); {
	case code.ToPrimary() == sqlite.ResultFull, code == sqlite.ResultIOErrSHMSize:
		return fmt.Errorf("%w: %w", db.ErrFull, err)
	case code.ToPrimary() == sqlite.ResultBusy, code.ToPrimary() == sqlite.ResultLocked:
		return fmt.Errorf("%w: %w", db.ErrUnavailable, err)
	}
	return err
}

// isIOError tells an error after which the file, or what the system believes of
// it, cannot be trusted. The log's index failing to grow is a full disk.
func isIOError(err error) bool {
	code := sqlite.ErrCode(err)
	return code.ToPrimary() == sqlite.ResultIOErr && code != sqlite.ResultIOErrSHMSize && code != sqlite.ResultIOErrNoMem
}
