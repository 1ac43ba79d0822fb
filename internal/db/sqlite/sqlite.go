// Package sqlite stores everything in one SQLite file.
//
// One connection writes (writer.go). Writes are queued, and those that are queued at the
// same time share one commit. Each of them returns after that commit is on disk. Reads
// use other connections and never wait for a write (reader.go). A commit appends the
// changed pages to SQLite's write-ahead log, the WAL: the file next to it that ends in
// -wal. Checkpoints move them into the database (checkpoint.go).
package sqlite

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"animalstore/internal/db"
	"animalstore/internal/fair"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitemigration"
	"zombiezen.com/go/sqlite/sqlitex"
)

// busyTimeout is how long a statement waits for another process, such as a command that
// manages keys while the server is running.
const busyTimeout = 5 * time.Second

//go:embed schema.sql
var schema1 string

// schema is the first version of the tables, and what later versions change about it. Until
// the first release, schema.sql is edited in place, and with each edit the last byte of
// AppID goes up by one, so that stores from before the edit are refused. From then on,
// Migrations is only ever appended to: its length is the version of the file.
var schema = sqlitemigration.Schema{
	AppID:      0x414e530b, // "ANS" and 11
	Migrations: []string{schema1},
}

// Options control how [Open] opens a file.
type Options struct {
	// Serve makes this process the only server of the file until Close. Open
	// fails while another process is its server.
	Serve bool
	// MustExist makes Open fail instead of creating a file.
	MustExist bool
	// Fatal is called at most once: when a write meets an I/O error or a damaged file,
	// or when a server's database file or WAL is removed or replaced. It must end the
	// process, because what was written can't be trusted any more. If it is nil, errors
	// are only returned.
	Fatal func(error)
	// NoSync never waits for the disk, for tests and benchmarks: a power cut loses
	// writes that were acknowledged and may damage the file. No flag and no variable may set it.
	NoSync bool
}

// DB is a [db.DB] in a SQLite file.
type DB struct {
	path    string
	lock    *serverLock // held while serving, otherwise nil
	guard   *fileGuard  // of a server's files, otherwise nil
	fatal   func(error)
	noSync  bool
	slots   *fair.Semaphore   // shares the readers
	readers chan *sqlite.Conn // the idle ones
	nread   int               // number of readers
	writer  *writer
	claims  claims // of deliveries
	closing sync.Once
}

var _ db.DB = (*DB)(nil)

// Open opens the file at path, and creates it if it doesn't exist. It refuses a file
// that isn't a SQLite database, belongs to another program or was written by a newer
// animalstore. With opts.Serve, it migrates the tables, and refuses a file that another
// process serves. Otherwise it refuses tables that have to be migrated, because a server
// may be using them.
func Open(ctx context.Context, path string, opts Options) (_ *DB, err error) {
	if err := checkVersion(); err != nil {
		return nil, err
	}
	// An absolute path is always a file: "" and ":memory:" mean something else to
	// SQLite.
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	d := &DB{path: path, fatal: callOnce(opts.Fatal), noSync: opts.NoSync, claims: claims{of: map[int64]map[int64]int64{}}}
	defer func() {
		if err != nil {
			d.Close()
		}
	}()
	if err := d.prepareFile(opts); err != nil {
		return nil, err
	}
	path = d.path
	if err := d.migrate(ctx); err != nil {
		return nil, describeOpenError(path, err)
	}
	conn, err := d.connect()
	if err != nil {
		return nil, describeOpenError(path, err)
	}
	d.writer = startWriter(conn, d.fatal)
	if opts.Serve {
		// After a failed write, the WAL may have frames that are in the system's cache
		// but not on disk. Moving the whole WAL into the database writes them again.
		if err := d.writer.checkpoint("TRUNCATE"); err != nil {
			return nil, describeOpenError(path, err)
		}
	}
	if err := d.openReaders(opts.Serve); err != nil {
		return nil, describeOpenError(path, err)
	}
	if opts.Serve {
		if d.guard, err = startFileGuard(path, d.fatal); err != nil {
			return nil, describeOpenError(path, err)
		}
		d.writer.checkWAL = d.guard.checkWAL
	}
	return d, nil
}

// prepareFile creates the file if there is none, refuses one that isn't ours, and makes
// this process its only server if opts say so. It comes before anything else that writes.
func (d *DB) prepareFile(opts Options) (err error) {
	if err := createFile(d.path, opts.MustExist); err != nil {
		return err
	}
	// The WAL is next to the file, not next to a symbolic link.
	if d.path, err = filepath.EvalSymlinks(d.path); err != nil {
		return err
	}
	if err := refuseAlias(d.path); err != nil {
		return err
	}
	version, err := checkOurs(d.path)
	if err != nil {
		return describeOpenError(d.path, err)
	}
	switch known := len(schema.Migrations); {
	case opts.Serve:
		d.lock, err = lockServer(d.path)
	case version > 0 && version < known:
		err = db.OutdatedError(int64(version), int64(known))
	}
	if err != nil {
		return describeOpenError(d.path, err)
	}
	return nil
}

// migrate creates or migrates the tables, on a separate connection.
func (d *DB) migrate(ctx context.Context) error {
	conn, err := d.connect()
	if err != nil {
		return err
	}
	return errors.Join(sqlitemigration.Migrate(ctx, conn, schema), conn.Close())
}

// Close implements [db.DB]. It leaves a single file, without a WAL.
func (d *DB) Close() (err error) {
	d.closing.Do(func() {
		var errs []error
		if d.guard != nil {
			d.guard.close()
		}
		if d.slots != nil {
			d.slots.Close()
		}
		if d.nread > 0 {
			errs = append(errs, d.closeReaders())
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

// Generation implements [db.DB]. The number is odd during a commit.
func (d *DB) Generation() (uint64, bool) {
	g := d.writer.generation.Load()
	return g, g%2 == 0
}

// cacheSize is the memory for the pages of a connection, in KiB if negative. 2 MiB hold
// the inner pages of the trees in a store of millions of pets. The system caches the other
// pages, so a larger cache would gain little, and each connection would allocate it.
const cacheSize = "-2048"

// openConn opens a connection that waits for other processes. Every connection of
// this package comes from here.
func openConn(path string, access sqlite.OpenFlags) (*sqlite.Conn, error) {
	c, err := sqlite.OpenConn(path, access)
	if err != nil {
		return nil, err
	}
	c.SetBusyTimeout(busyTimeout)
	return c, nil
}

// connect opens a connection for reading and writing the store.
func (d *DB) connect() (*sqlite.Conn, error) {
	c, err := openConn(d.path, sqlite.OpenReadWrite)
	if err != nil {
		return nil, err
	}
	synchronous := "FULL"
	if d.noSync {
		synchronous = "OFF"
	}
	for _, pragma := range []string{
		"PRAGMA synchronous = " + synchronous,
		"PRAGMA journal_mode = WAL",
		"PRAGMA foreign_keys = ON",
		"PRAGMA temp_store = MEMORY",
		"PRAGMA cache_size = " + cacheSize,
		// On its own, SQLite would not report a checkpoint that failed.
		"PRAGMA wal_autocheckpoint = 0",
		// The WAL grows while another process reads for a long time, as a backup does.
		// Without a limit, its file would keep that size. The limit is above its usual
		// size.
		"PRAGMA journal_size_limit = " + strconv.Itoa(checkpointPagesForce*4096),
	} {
		if err := sqlitex.ExecuteTransient(c, pragma, nil); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

// checkOurs returns the version of a file's tables, 0 if there are none. It refuses a
// file of another program, of a development version or of a newer version, and runs
// before anything writes to the file.
func checkOurs(path string) (version int, err error) {
	// Read-only, because the last connection to close would otherwise move the WAL
	// into the file.
	version, err = checkOursWith(path, sqlite.OpenReadOnly)
	if sqlite.ErrCode(err).ToPrimary() == sqlite.ResultReadOnly {
		// An interrupted change has to be rolled back before the file can be read.
		version, err = checkOursWith(path, sqlite.OpenReadWrite)
	}
	return version, err
}

func checkOursWith(path string, access sqlite.OpenFlags) (version int, err error) {
	c, err := openConn(path, access)
	if err != nil {
		return 0, err
	}
	defer c.Close()
	var appID, tables int
	for query, n := range map[string]*int{
		"PRAGMA user_version":                &version,
		"PRAGMA application_id":              &appID,
		"SELECT count(*) FROM sqlite_schema": &tables,
	} {
		stmt, err := c.Prepare(query) // fails if the file isn't a database
		if err != nil {
			return 0, err
		}
		if *n, err = sqlitex.ResultInt(stmt); err != nil {
			return 0, err
		}
	}
	known, ours := len(schema.Migrations), int(schema.AppID)
	switch {
	case appID != ours && appID>>8 == ours>>8:
		return 0, db.ErrDevelopment
	case appID != ours && (appID != 0 || tables > 0):
		return 0, &db.OpenError{Reason: db.Foreign, Text: "this SQLite database belongs to another program"}
	case version > known:
		return 0, db.NewerError(int64(version), int64(known))
	}
	return version, nil
}

// createFile creates an empty file that only its owner can read, if it doesn't
// exist. SQLite creates the WAL and the index next to it with the same mode.
func createFile(path string, mustExist bool) error {
	info, err := os.Stat(path)
	switch {
	case err == nil && info.IsDir():
		return fmt.Errorf("%s is a directory: name a file", path)
	case err == nil:
		return nil
	case !errors.Is(err, os.ErrNotExist):
		return err
	case mustExist:
		return &db.OpenError{Reason: db.Absent, Text: path + " does not exist"}
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, os.ErrExist) { // another process just created it
		return nil
	}
	if errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("the directory %s does not exist: create it first", filepath.Dir(path))
	}
	if errors.Is(err, os.ErrPermission) {
		return fmt.Errorf("%s cannot be created: give the user that runs animalstore write access to its directory", path)
	}
	if err != nil {
		return describeOpenError(path, err)
	}
	return f.Close()
}

// checkVersion refuses a version of SQLite that can corrupt a database when it
// resets the write-ahead log, which was fixed in 3.51.3.
func checkVersion() error {
	if sqlite.VersionNumber < 3_051_003 {
		return fmt.Errorf("built with SQLite %s: at least 3.51.3 is needed", sqlite.Version)
	}
	return nil
}
