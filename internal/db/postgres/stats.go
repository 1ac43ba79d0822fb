package postgres

import (
	"context"
	"time"

	"animalstore/internal/db"
)

// Stats describe how busy the connections are, and how long operations have waited for
// them since the database was opened.
type Stats struct {
	Acquired, Idle, Max int // connections
	Waiting             int // operations that wait for their turn
	Waits               int64
	WaitTime            time.Duration // of all Waits
}

// Stats returns the statistics of d.
func (d *DB) Stats() Stats {
	s := d.pool.Stat()
	return Stats{
		Acquired: int(s.AcquiredConns()),
		Idle:     int(s.IdleConns()),
		Max:      int(s.MaxConns()),
		Waiting:  d.slots.Waiting(),
		Waits:    s.EmptyAcquireCount(),
		WaitTime: s.EmptyAcquireWaitTime(),
	}
}

// Size implements [db.DB].
func (d *DB) Size(ctx context.Context) (int64, error) {
	return readOne(ctx, d, "read the size", db.ScanValue[int64], "SELECT pg_database_size(current_database())")
}
