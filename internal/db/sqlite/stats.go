package sqlite

import (
	"context"
	"os"
	"sync/atomic"
)

// writeCounts are counted once for each transaction.
type writeCounts struct{ commits, writes atomic.Int64 }

// Stats describe the load of a database, and count what it did since it was opened.
type Stats struct {
	QueuedWrites int64 // waiting for the connection that writes
	Commits      int64
	Writes       int64 // in all commits, including refused ones
	Readers      int   // connections for reading
	BusyReaders  int
	WaitingReads int // for a connection
	FileBytes    int64
	WALBytes     int64 // of the write-ahead log
}

// Stats returns the statistics of d. It reads the size of two files, and takes nothing that
// a request waits for.
func (d *DB) Stats() Stats {
	return Stats{
		QueuedWrites: int64(d.writer.queued()),
		Commits:      d.writer.counts.commits.Load(),
		Writes:       d.writer.counts.writes.Load(),
		Readers:      d.nread,
		BusyReaders:  d.nread - len(d.readers),
		WaitingReads: d.slots.Waiting(),
		FileBytes:    fileSize(d.path),
		WALBytes:     fileSize(d.path + "-wal"),
	}
}

// Size implements [db.DB].
func (d *DB) Size(context.Context) (int64, error) {
	return fileSize(d.path) + fileSize(d.path+"-wal"), nil
}

// fileSize is 0 for a file that doesn't exist, such as a WAL without writes.
func fileSize(path string) int64 {
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.Size()
}
