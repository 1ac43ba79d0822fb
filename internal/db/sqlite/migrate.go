package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"

	"animalstore/internal/db"
)

// updateAttempts is how often, every updateEvery, a command checks whether another
// process has done the next step of updating the tables. A slow disk needs seconds for one.
const (
	updateAttempts = 50
	updateEvery    = 100 * time.Millisecond
)

// updateTables updates the tables of an existing store for a command. It takes the
// server's lock meanwhile, because a running server of an older version would keep
// writing in the old way, for example without events. It must be called before any
// connection is open.
func (d *DB) updateTables(ctx context.Context, progress func(db.Update)) error {
	seen := -1
	for attempt := 1; ; attempt++ {
		lock, err := lockServer(d.path)
		if err == nil {
			err = d.migrate(ctx, progress)
			return errors.Join(err, lock.Close())
		}
		if !errors.Is(err, errServed) {
			return err
		}
		// A server or command of this version may be updating them right now.
		time.Sleep(updateEvery)
		version, err := checkOurs(d.path)
		if version != seen { // another step of the update is done
			seen, attempt = version, 0
		}
		switch known := len(schema.Migrations); {
		case err != nil || version == known:
			return err
		case attempt == updateAttempts && isUpdating(d.path):
			return errors.New("another animalstore is updating the tables of this file, which takes minutes in a large store. Try again when it has finished")
		case attempt == updateAttempts:
			return fmt.Errorf("an older animalstore serves this file, whose tables are at version %d and would have to be updated to %d. Update the server first, or run its version of this command", version, known)
		}
	}
}

// migrate updates the tables on a separate connection.
func (d *DB) migrate(ctx context.Context, progress func(db.Update)) error {
	conn, err := d.connect()
	if err != nil {
		return err
	}
	return errors.Join(d.update(ctx, conn, progress), conn.Close())
}
