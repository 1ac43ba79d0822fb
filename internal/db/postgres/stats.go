package postgres

import "time"

// Stats are how busy the connections are, how long they were waited for since the
// database was opened, and how large the database is.
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
		Waiting:  d.turns.Waiting(),
		Waits:    s.EmptyAcquireCount(),
		WaitTime: s.EmptyAcquireWaitTime(),
		Bytes:    d.size(),
	}
}
