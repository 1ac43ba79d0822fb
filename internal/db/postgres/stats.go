package postgres

import (
	"context"
	"sync"
	"time"
)

// Stats describe how busy the connections are, how long operations have waited for them
// since the database was opened, and how large the database is.
type Stats struct {
	Acquired, Idle, Max int // connections
	Waiting             int // operations that wait for their turn
	Waits               int64
	WaitTime            time.Duration // of all Waits
	Bytes               int64         // at most a minute old when it is read often; 0 until it is known
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
		Bytes:    d.sampledSize(),
	}
}

// Size implements [db.DB].
func (d *DB) Size(ctx context.Context) (int64, error) {
	return readOne(ctx, d, "read the size", scanValue[int64], "SELECT pg_database_size(current_database())")
}

// sizeEvery is how often metrics read the size of the database: PostgreSQL checks each of
// its files for that.
const sizeEvery = time.Minute

// sampledSize is the size that was read last.
type sampledSize struct {
	mu    sync.Mutex
	bytes int64     // 0 until it is known
	asked time.Time // when reading it began
}

// sampledSize returns the last known size without waiting, and reads it in the background
// if that is sizeEvery ago. If reading fails, the old size stays.
func (d *DB) sampledSize() int64 {
	d.sampled.mu.Lock()
	defer d.sampled.mu.Unlock()
	if now := time.Now(); now.Sub(d.sampled.asked) >= sizeEvery {
		d.sampled.asked = now
		go func() {
			bytes, err := d.Size(context.Background())
			if err != nil {
				return
			}
			d.sampled.mu.Lock()
			defer d.sampled.mu.Unlock()
			d.sampled.bytes = bytes
		}()
	}
	return d.sampled.bytes
}
