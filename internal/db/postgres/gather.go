package postgres

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"animalstore/internal/db"

	"github.com/jackc/pgx/v5"
)

const (
	// gatherAtOnce is how many statements of a gather run at the same time. While that
	// many do, further calls wait for the next one. With one at a time, every call to a
	// distant server would wait for somebody else's round trip first.
	gatherAtOnce = 4
	// gatherWait is how long a call waits for a statement to end while fewer are running.
	// To a server nearby a statement is shorter, and sharing the next one saves more than
	// the wait costs.
	gatherWait = time.Millisecond
	// gatherPatience is how long a call waits without noticing that its client has
	// disconnected. To notice it, a goroutine has to read from the connection.
	gatherPatience = 50 * time.Millisecond
)

// gather answers calls that arrive while others are under way with one statement. A call
// never joins a statement that has begun, which could miss a change that was
// acknowledged before the call: it waits for the next one. Calls with equal keys share a
// value, so nobody may change it.
type gather[K comparable, V any] struct {
	run func(ctx context.Context, keys []K) ([]V, error) // returns a value for each key
	// write is whether it changes something. Its keys are distinct, and those of callers
	// who gave up before their statement began are replaced by zero values.
	write bool

	mu      sync.Mutex
	running int
	next    *round[K, V] // the calls that wait, if there are any
}

// round is the calls that one statement answers.
type round[K comparable, V any] struct {
	keys  []K
	index map[K]int     // of keys
	slow  chan struct{} // closed after gatherPatience
	done  chan struct{} // closed when the rest is final
	stop  []*time.Timer // when it is done

	values []V
	err    error
}

// value returns the value of a key.
func (g *gather[K, V]) value(ctx context.Context, d *DB, key K) (value V, err error) {
	if err := d.watch.check(); err != nil {
		return value, err
	}
	g.mu.Lock()
	if g.running == 0 {
		g.running++
		g.mu.Unlock()
		defer g.finish()
		return g.lead(ctx, key)
	}
	r, i := g.join(key)
	g.mu.Unlock()

	select {
	case <-r.done:
	case <-r.slow:
		waiting, cancel := context.WithTimeout(ctx, d.timeout-gatherPatience)
		defer cancel()
		select {
		case <-r.done:
		case <-waiting.Done():
			select {
			case <-r.done: // at the same moment
			default:
				return value, g.giveUp(ctx, r, i)
			}
		}
	}
	if r.err != nil {
		return value, r.err
	}
	return r.values[i], nil
}

// lead runs a statement for a call that found none under way.
func (g *gather[K, V]) lead(ctx context.Context, key K) (value V, err error) {
	runtime.Gosched() // let those who are about to call do so first
	g.mu.Lock()
	if g.next == nil {
		g.mu.Unlock()
		values, err := g.run(ctx, []K{key})
		if err != nil {
			return value, err
		}
		return values[0], nil
	}
	r, i := g.join(key)
	g.next = nil
	g.mu.Unlock()
	g.answer(r)
	if r.err != nil {
		return value, r.err
	}
	return r.values[i], nil
}

// join adds a key to the next round and returns its place. g.mu must be held.
func (g *gather[K, V]) join(key K) (r *round[K, V], i int) {
	if g.next == nil {
		r := &round[K, V]{index: map[K]int{}, slow: make(chan struct{}), done: make(chan struct{})}
		r.stop = append(r.stop, time.AfterFunc(gatherWait, func() { g.beginBeside(r) }), time.AfterFunc(gatherPatience, func() { close(r.slow) }))
		g.next = r
	}
	r = g.next
	i, found := r.index[key]
	if !found {
		i = len(r.keys)
		r.keys, r.index[key] = append(r.keys, key), i
	}
	return r, i
}

// giveUp leaves a round, and returns why the caller gets no value.
func (g *gather[K, V]) giveUp(ctx context.Context, r *round[K, V], i int) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.write && g.next != r {
		return fmt.Errorf("wait for a statement: %w", db.ErrOutcomeUnknown)
	}
	if g.write {
		var none K
		r.keys[i] = none
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	return fmt.Errorf("wait for a statement: %w", db.ErrUnavailable)
}

// finish ends a statement, and starts the next one if calls wait for it.
func (g *gather[K, V]) finish() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.next == nil {
		g.running--
		return
	}
	g.begin()
}

// beginBeside starts a round that has waited, if it still waits and there is room.
func (g *gather[K, V]) beginBeside(r *round[K, V]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.next == r && g.running < gatherAtOnce {
		g.running++
		g.begin()
	}
}

// begin starts the next round.
func (g *gather[K, V]) begin() {
	go func() {
		defer g.finish()
		runtime.Gosched() // let those who are about to call do so first
		g.mu.Lock()
		r := g.next
		g.next = nil
		g.mu.Unlock()
		if r != nil {
			g.answer(r)
		}
	}()
}

// answer runs the statement of a round. None of its callers decides about it. A panic is
// an error of theirs, as it is in a statement of their own.
func (g *gather[K, V]) answer(r *round[K, V]) {
	defer close(r.done)
	defer func() {
		if v := recover(); v != nil {
			r.err = fmt.Errorf("panic in a shared statement: %v\n%s", v, debug.Stack())
		}
		for _, timer := range r.stop {
			timer.Stop()
		}
	}()
	r.values, r.err = g.run(context.Background(), r.keys)
}

// readTogether runs a statement for several callers, which takes none of their turns.
func (d *DB) readTogether(ctx context.Context, doing string, scan func(pgx.Rows) error, query string, args ...any) error {
	return d.readFor(ctx, db.System, func(ctx context.Context, c *pgx.Conn) error {
		rows, err := c.Query(ctx, query, args...)
		if err != nil {
			return failed(doing, err)
		}
		defer rows.Close()
		for rows.Next() {
			if err := scan(rows); err != nil {
				return failed(doing, err)
			}
		}
		return failed(doing, rows.Err())
	})
}
