package postgres

import (
	"context"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
)

// sizeEvery is how often the size of the database is found out, for which PostgreSQL
// looks at each of its files.
const sizeEvery = time.Minute

// sampledSize is the size of the database, as it was up to sizeEvery ago.
type sampledSize struct {
	mu    sync.Mutex
	bytes int64     // 0 until it is known
	asked time.Time // when it was last asked for
}

// size returns the last known size without waiting, and has it found out again if that
// was too long ago. So nobody asks more often, however often the metrics are read.
func (d *DB) size() int64 {
	d.sampled.mu.Lock()
	defer d.sampled.mu.Unlock()
	if now := time.Now(); now.Sub(d.sampled.asked) >= sizeEvery {
		d.sampled.asked = now
		go d.sampleSize()
	}
	return d.sampled.bytes
}

// sampleSize finds out the size. If it can't, the old one stays until the next time: a
// database that doesn't respond shows elsewhere.
func (d *DB) sampleSize() {
	ctx, cancel := context.WithTimeout(context.Background(), d.timeout)
	defer cancel()
	var bytes int64
	err := d.read(ctx, func(ctx context.Context, c *pgx.Conn) error {
		return c.QueryRow(ctx, "SELECT pg_database_size(current_database())").Scan(&bytes)
	})
	if err != nil {
		return
	}
	d.sampled.mu.Lock()
	d.sampled.bytes = bytes
	d.sampled.mu.Unlock()
}
