package sqlite

import (
	"fmt"
	"os"
	"time"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// A server checks its whole file when it starts, if the file is small enough for that to
// take a moment. See docs/decisions/0002-sqlite-file.md.
const (
	startCheckSize = 4 << 20
	startCheckTime = 2 * time.Second
)

// checkAtStart refuses a damaged file. It compares tables with their indexes, which
// contain all columns of pets and orders. It gives up, without an error, on a file that
// takes too long.
func checkAtStart(path string, c *sqlite.Conn) error {
	if info, err := os.Stat(path); err != nil || info.Size() > startCheckSize {
		return err
	}
	over := make(chan struct{})
	timer := time.AfterFunc(startCheckTime, func() { close(over) })
	defer timer.Stop()
	c.SetInterrupt(over)
	defer c.SetInterrupt(nil)
	found := ""
	err := sqlitex.ExecuteTransient(c, "PRAGMA integrity_check(1)", &sqlitex.ExecOptions{ResultFunc: func(stmt *sqlite.Stmt) error {
		found = stmt.ColumnText(0)
		return nil
	}})
	switch {
	case sqlite.ErrCode(err).ToPrimary() == sqlite.ResultInterrupt:
		return nil
	case err != nil:
		return err
	case found != "ok":
		return fmt.Errorf("%w: %s", errDamagedRow, found)
	}
	return nil
}
