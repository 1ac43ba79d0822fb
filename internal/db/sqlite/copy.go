package sqlite

import (
	"context"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"time"

	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// Files copies stores from file to file, for backups. Package transfer gives a copy
// its name once it is complete and checked.
type Files struct{}

// copyStep is how many bytes are copied at a time. Each step is flushed to disk, because
// otherwise a server's commits would wait for everything that the system has buffered.
const copyStep = 4 << 20

// Copy copies the store in the file from, as it is at one instant, into the empty file
// to. A server may be using the store. The copy needs no other file: it has no
// WAL. progress is called with the bytes copied so far, and of how many.
//
// The WAL can't restart until Copy returns, so it grows by everything that is written
// until then.
func (Files) Copy(ctx context.Context, from, to string, progress func(copied, total int64)) error {
	from, err := findStore(from)
	if err != nil {
		return err
	}
	source, err := openSnapshot(from)
	if err != nil {
		return describeOpenError(from, err)
	}
	defer source.Close()
	if err := copyPages(ctx, source, to, progress); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return classify(err)
	}
	return clearWALMode(to)
}

// openSnapshot opens a connection that sees the store as it is now.
func openSnapshot(path string) (*sqlite.Conn, error) {
	c, err := openConn(path, sqlite.OpenReadOnly)
	if err != nil {
		return nil, err
	}
	// The first read fixes the state that the transaction sees.
	for _, statement := range []string{"BEGIN", "SELECT 1 FROM sqlite_schema"} {
		if err := sqlitex.ExecuteTransient(c, statement, nil); err != nil {
			c.Close()
			return nil, err
		}
	}
	return c, nil
}

// copyPages copies all pages that a connection sees. Its open transaction makes them
// those of one instant, however long this takes.
func copyPages(ctx context.Context, source *sqlite.Conn, to string, progress func(copied, total int64)) (err error) {
	pageSize, err := sqlitex.ResultInt(source.Prep("PRAGMA page_size"))
	if err != nil {
		return err
	}
	file, err := os.OpenFile(to, os.O_RDWR, 0) // opened before SQLite, and closed after it
	if err != nil {
		return err
	}
	defer file.Close()
	target, err := sqlite.OpenConn(to, sqlite.OpenReadWrite)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, target.Close()) }()
	for _, pragma := range []string{"PRAGMA journal_mode = OFF", "PRAGMA synchronous = OFF", "PRAGMA cache_size = 16"} {
		if err := sqlitex.ExecuteTransient(target, pragma, nil); err != nil {
			return err
		}
	}
	pages, err := sqlite.NewBackup(target, "", source, "")
	if err != nil {
		return err
	}
	defer pages.Close()
	for more := true; more; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if more, err = pages.Step(copyStep / pageSize); err != nil {
			return err
		}
		if err := file.Sync(); err != nil {
			return err
		}
		total := int64(pages.PageCount()) * int64(pageSize)
		progress(total-int64(pages.Remaining())*int64(pageSize), total)
	}
	return nil
}

// clearWALMode marks a file as one without a WAL, as "PRAGMA journal_mode = DELETE"
// would, but without creating a WAL to do it. A server turns the WAL on again.
func clearWALMode(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	// The write version and the read version of the file format: 2 is with a WAL.
	_, err = f.WriteAt([]byte{1, 1}, 18)
	return errors.Join(err, f.Sync(), f.Close())
}

// Open opens a store to check it.
func (Files) Open(_ context.Context, path string) (db.Source, error) {
	path, err := findStore(path)
	if err != nil {
		return nil, err
	}
	conn, err := openSnapshot(path)
	if err != nil {
		return nil, describeOpenError(path, err)
	}
	// Comparing tables with their indexes reads pages in random order. Each sort takes as
	// much memory as the cache, and then continues in a temporary file.
	if err := sqlitex.ExecuteTransient(conn, "PRAGMA cache_size = -16384", nil); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return &Snapshot{conn: conn}, nil
}

// Extent returns the page size of a store's file, and the length that its header says. The
// length is 0 in WAL mode: the WAL may have a newer header, and SQLite extends a file whose
// length isn't a whole number of pages, as that of a backup that was used as a store.
func (Files) Extent(path string) (page, length int64, err error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, 0, err
	}
	defer f.Close()
	header := make([]byte, 32)
	if _, err := f.ReadAt(header, 0); err != nil {
		return 0, 0, err
	}
	page = int64(binary.BigEndian.Uint16(header[16:]))
	if page == 1 { // doesn't fit
		page = 1 << 16
	}
	if header[18] == 2 {
		return page, 0, nil
	}
	return page, page * int64(binary.BigEndian.Uint32(header[28:])), nil
}

// RemoveLog removes the empty WAL that reading a file in WAL mode leaves next to it, unless
// another process uses the file.
func (Files) RemoveLog(path string) error {
	conn, err := openConn(path, sqlite.OpenReadWrite)
	if err != nil {
		return err
	}
	err = sqlitex.ExecuteTransient(conn, "SELECT 1 FROM sqlite_schema", nil) // opens the WAL
	return errors.Join(err, conn.Close())
}

// Companions returns the names of the files that belong to a store next to its own.
func (Files) Companions(path string) []string {
	return []string{path + "-wal", path + "-shm", path + "-journal", path + ".lock"}
}

// Reserve keeps servers away from a path, until release is called, which leaves no lock file.
// It refuses a path that a server uses.
func (Files) Reserve(path string) (release func() error, err error) {
	path, err = filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	lock, err := lockPath(path)
	if err != nil {
		return nil, describeOpenError(path, err)
	}
	return func() error { return lock.remove(path + ".lock") }, nil
}

// BackupID returns the store's id in the names of its backups, and the latest times that
// BeginBackup stored since it has this id.
func (d *DB) BackupID(ctx context.Context) (id string, latest db.Begun, err error) {
	err = d.read(ctx, func(c *sqlite.Conn) error {
		return selectEach(c, "select id", func(r row) error {
			id, latest = r.ColumnText(0), db.Begun{Directory: time.UnixMilli(r.ColumnInt64(1)), Remote: time.UnixMilli(r.ColumnInt64(2))}
			return nil
		}, "SELECT value, backed_up_at, uploaded_at FROM store_id")
	})
	return id, latest, err
}

// BeginBackup stores the time of a backup, before it is made.
func (d *DB) BeginBackup(ctx context.Context, at db.Begun) error {
	return d.writer.do(ctx, func(c *sqlite.Conn) error {
		return execute(c, "begin backup", "UPDATE store_id SET backed_up_at = max(backed_up_at, ?), uploaded_at = max(uploaded_at, ?)", at.Directory.UnixMilli(), at.Remote.UnixMilli())
	})
}

// RenewID gives the store a new id, if it still has the old one, so that its backups don't
// replace those of the store that it is a copy of. It returns the id that the store has then.
func (d *DB) RenewID(ctx context.Context, old string) (id string, err error) {
	return resultOf(ctx, d.writer.do, func(c *sqlite.Conn) (id string, err error) {
		if err := execute(c, "renew id", "UPDATE store_id SET value = lower(hex(randomblob(6))), backed_up_at = 0, uploaded_at = 0 WHERE value = ?", old); err != nil {
			return "", err
		}
		return selectOne(c, "select id", db.ScanValue[string], "SELECT value FROM store_id")
	})
}
