package sqlite

import (
	"fmt"
	"os"
	"time"
	"unicode/utf8"

	"animalstore"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// A server checks its whole file when it starts, if the file is small enough for that to
// take a moment. See docs/decisions/0016-flipped-bytes.md.
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

// statusAt returns the status with that index, or "" if the index is damaged.
func statusAt[S ~string](all []S, i int64) S {
	if i < 0 || i >= int64(len(all)) {
		return ""
	}
	return all[i]
}

// checkPet refuses a pet that can't have been stored like this.
func checkPet(p *animalstore.Pet) error {
	if p.ID <= 0 || p.Status == "" || p.Name == "" || !utf8.ValidString(p.Name) {
		return fmt.Errorf("%w: pet %d", errDamagedRow, p.ID)
	}
	return nil
}

// checkPets does that for a page, which is sorted by descending id.
func checkPets(page []animalstore.Pet) error {
	for i := range page {
		if i > 0 && page[i].ID >= page[i-1].ID {
			return fmt.Errorf("%w: pet %d is out of order", errDamagedRow, page[i].ID)
		}
		if err := checkPet(&page[i]); err != nil {
			return err
		}
	}
	return nil
}

// checkOrder refuses an order that can't have been stored like this.
func checkOrder(o *animalstore.Order) error {
	if o.ID <= 0 || o.Status == "" {
		return fmt.Errorf("%w: order %d", errDamagedRow, o.ID)
	}
	return nil
}
