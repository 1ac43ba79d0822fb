package postgres

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"runtime/debug"
	"sync"
	"time"

	"animalstore/internal/fair"
)

// batcher runs calls that arrive while others are running together, as one batch. A call
// never joins a batch that has begun, which could miss a change that was acknowledged
// before the call. If more wait than fit in a batch, callers take turns.
//
// On a machine with two cores, over 32 connections, it makes the first page 2.3 times as
// fast, a page at a random cursor 1.6 times and the mix 1.25 times; creates become 2.1
// times as fast over 16 connections and 3.0 times over 128.
type batcher[Req, Res any] struct {
	// run handles several calls and returns a result for each, in their order. It uses
	// no caller's context.
	run func(context.Context, []Req) ([]Res, error)
	// timeout limits a call, including its wait for the batches before it.
	timeout time.Duration
	// alone is set if batches would wait for each other's locks: only one runs at a time.
	alone bool

	mu      sync.Mutex
	running int
	begun   time.Time // when the last batch began
	waiting fair.Queue[*batchCall[Req, Res]]
}

const (
	// maxBatch is the most calls in a batch.
	maxBatch = 256
	// maxBatches is the most batches that run concurrently. One is best if the server is
	// near: more calls share the next one. Others start only while a batch takes longer
	// than slowBatch, as all do if the server is far away.
	maxBatches = 4
	slowBatch  = time.Millisecond
)

type batchCall[Req, Res any] struct {
	req  Req
	done chan struct{} // closed when the rest is final
	res  Res
	err  error
}

var (
	// errBatchBegun is returned to a caller that gave up after its batch began.
	errBatchBegun = errors.New("the batch has begun")
	// errBatchLate is returned after the timeout.
	errBatchLate = errors.New("no response in time")
)

// do runs a call. If ctx ends first or the timeout passes it returns that error,
// together with errBatchBegun if the call is being run.
func (b *batcher[Req, Res]) do(ctx context.Context, req Req) (res Res, err error) {
	if err := ctx.Err(); err != nil {
		return res, err
	}
	c := &batchCall[Req, Res]{req: req, done: make(chan struct{})}
	caller := fair.CallerOf(ctx)
	b.mu.Lock()
	b.waiting.Push(caller, c)
	if b.running == 0 || !b.alone && b.running < maxBatches && time.Since(b.begun) > slowBatch {
		b.running++
		go b.work()
	}
	b.mu.Unlock()
	late := time.NewTimer(b.timeout)
	defer late.Stop()
	select {
	case <-c.done:
		return c.res, c.err
	case <-ctx.Done():
		err = ctx.Err()
	case <-late.C:
		err = errBatchLate
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting.Remove(caller, c) {
		return res, err
	}
	return res, fmt.Errorf("%w: %w", errBatchBegun, err)
}

// work runs batches until no call waits.
func (b *batcher[Req, Res]) work() {
	for {
		runtime.Gosched() // let other callers queue their calls first
		b.mu.Lock()
		batch := b.next()
		b.begun = time.Now()
		if len(batch) == 0 {
			b.running--
			b.mu.Unlock()
			return
		}
		b.mu.Unlock()
		b.runBatch(batch)
	}
}

// next takes the calls of the next batch from the queue. The caller holds mu.
func (b *batcher[Req, Res]) next() (batch []*batchCall[Req, Res]) {
	for len(batch) < maxBatch {
		_, c, ok := b.waiting.Pop()
		if !ok {
			break
		}
		batch = append(batch, c)
	}
	return batch
}

// runBatch runs calls. A panic is returned to every caller.
func (b *batcher[Req, Res]) runBatch(calls []*batchCall[Req, Res]) {
	reqs := make([]Req, len(calls))
	for i, c := range calls {
		reqs[i] = c.req
	}
	results, err := b.runSafely(reqs)
	for i, c := range calls {
		if c.err = err; err == nil {
			c.res = results[i]
		}
		close(c.done)
	}
}

func (b *batcher[Req, Res]) runSafely(reqs []Req) (results []Res, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic in a batch: %v\n%s", v, debug.Stack())
		}
	}()
	return b.run(context.Background(), reqs)
}
