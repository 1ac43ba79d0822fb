package api

import (
	"context"
	"sync"
	"time"
)

// patience is the context of a request: it ends when the client goes away or the
// request has taken too long. Most requests never wait for anything, so the
// timer behind it is made when somebody first does.
type patience struct {
	context.Context // that of the connection
	deadline        time.Time

	mu     sync.Mutex
	timed  context.Context // nil until somebody waits
	cancel context.CancelFunc
}

func (p *patience) Deadline() (time.Time, bool) { return p.deadline, true }

func (p *patience) Done() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timed == nil {
		p.timed, p.cancel = context.WithDeadline(p.Context, p.deadline)
	}
	return p.timed.Done()
}

func (p *patience) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.timed != nil {
		return p.timed.Err()
	}
	if err := p.Context.Err(); err != nil {
		return err
	}
	if !time.Now().Before(p.deadline) {
		return context.DeadlineExceeded
	}
	return nil
}

// outlive makes the request go on when its client seems to be gone: it may only
// have closed the half of the connection it sends on.
func (p *patience) outlive() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.Context = context.WithoutCancel(p.Context)
}

// restart gives the request its full time again.
func (p *patience) restart(span time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cancel != nil {
		p.cancel()
	}
	p.timed, p.cancel, p.deadline = nil, nil, time.Now().Add(span)
}

// end lets go of the timer.
func (p *patience) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cancel != nil {
		p.cancel()
	}
}
