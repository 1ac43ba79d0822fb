package sqlite

import (
	"sync"
	"sync/atomic"

	"animalstore/internal/db"
)

// writeQueue holds the writes that wait for the connection. Its size isn't limited,
// because each of them is a request in progress.
type writeQueue struct {
	size   atomic.Int64 // changes while mu is held
	mu     sync.Mutex
	writes db.FairQueue[*write]
}

func (q *writeQueue) empty() bool { return q.size.Load() == 0 }

func (q *writeQueue) push(wr *write) {
	caller := db.CallerOf(wr.ctx)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.writes.Push(caller, wr)
	q.size.Add(1)
}

// pop moves writes to the end of a batch, until that has this many.
func (q *writeQueue) pop(batch []*write, most int) []*write {
	if q.empty() {
		return batch
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(batch) < most {
		_, wr, ok := q.writes.Pop()
		if !ok {
			break
		}
		batch = append(batch, wr)
		q.size.Add(-1)
	}
	return batch
}
