package postgres

import "time"

// Stats are how busy the connections are, and how long they were waited for since the
// database was opened.
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
		Waiting:  d.turns.Waiting(),
		Waits:    s.EmptyAcquireCount(),
		WaitTime: s.EmptyAcquireWaitTime(),
	}
}
