package ratelimit

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/gomodule/redigo/redis"
)

// pipeline sends the calls of concurrent requests over one connection without waiting
// for replies in between, and hands each its own reply: Redis replies in the order of
// the calls. A call is never sent twice.
//
// A connection with a call that got no reply in time is given up, with all calls that
// wait for one. Skipping a late reply would keep the connection, but a server that is late
// makes this server stop calling Redis anyway.
type pipeline struct {
	conn   redis.Conn
	onEnd  func()        // called after the connection was given up
	wakeUp chan struct{} // tells the writer that there are calls to write
	ended  chan struct{} // closed when the connection is given up

	mu      sync.Mutex
	err     error   // why the connection was given up
	queue   []*call // not yet written
	sent    []*call // written or being written, waiting for their replies
	writing bool    // someone is writing
	spare   []*call // the memory of the last queue

	timer  *time.Timer
	fireAt time.Time // when the timer fires; zero if it is stopped
}

// call is one command. It gets exactly one reply or error.
type call struct {
	command  string
	args     []any
	deadline time.Time
	done     chan struct{}
	reply    any
	err      error
}

var (
	errLate       = errors.New("no reply in time")
	errUnexpected = errors.New("a reply that no call is waiting for")
)

func newPipeline(conn redis.Conn, onEnd func()) *pipeline {
	p := &pipeline{conn: conn, onEnd: onEnd, wakeUp: make(chan struct{}, 1), ended: make(chan struct{})}
	p.timer = time.AfterFunc(time.Hour, p.checkDeadlines)
	p.timer.Stop()
	go p.runWriter()
	go p.runReader()
	return p
}

// do sends a command and waits for its reply, for at most the timeout.
func (p *pipeline) do(timeout time.Duration, command string, args []any) (any, error) {
	c := &call{command: command, args: args, deadline: time.Now().Add(timeout), done: make(chan struct{})}
	p.mu.Lock()
	if err := p.err; err != nil {
		p.mu.Unlock()
		return nil, err
	}
	// A call that finds no other is written at once. Others are left to the writer,
	// which writes all that came meanwhile.
	alone := !p.writing && len(p.sent) == 0 && len(p.queue) == 0
	p.queue = append(p.queue, c)
	if p.fireAt.IsZero() || c.deadline.Before(p.fireAt) {
		p.fireAt = c.deadline
		p.timer.Reset(timeout)
	}
	p.mu.Unlock()
	if alone {
		p.write()
	} else {
		p.wakeWriter()
	}
	<-c.done
	return c.reply, c.err
}

func (p *pipeline) wakeWriter() {
	select {
	case p.wakeUp <- struct{}{}:
	default:
	}
}

func (p *pipeline) runWriter() {
	for {
		select {
		case <-p.ended:
			return
		case <-p.wakeUp:
		}
		runtime.Gosched() // let those who are about to call do so first
		p.write()
	}
}

// write writes what is queued, unless someone else is writing, who then wakes the
// writer for what was queued meanwhile.
func (p *pipeline) write() {
	p.mu.Lock()
	if p.writing || p.err != nil || len(p.queue) == 0 {
		p.mu.Unlock()
		return
	}
	batch := p.queue
	p.queue, p.spare = p.spare[:0], nil
	p.sent = append(p.sent, batch...)
	p.writing = true
	p.mu.Unlock()

	var err error
	for _, c := range batch {
		if err = p.conn.Send(c.command, c.args...); err != nil {
			break
		}
	}
	if err == nil {
		err = p.conn.Flush()
	}
	if err != nil {
		p.end(err)
	}

	clear(batch)
	p.mu.Lock()
	p.spare = batch
	p.writing = false
	more := len(p.queue) > 0
	p.mu.Unlock()
	if more {
		p.wakeWriter()
	}
}

// runReader hands out replies until the connection ends.
func (p *pipeline) runReader() {
	for {
		reply, err := p.conn.Receive()
		var refused redis.Error // concerns one call only
		if err != nil && !errors.As(err, &refused) {
			p.end(err)
			return
		}
		p.mu.Lock()
		if len(p.sent) == 0 {
			p.mu.Unlock()
			p.end(errUnexpected)
			return
		}
		c := p.sent[0]
		p.sent[0] = nil
		p.sent = p.sent[1:]
		p.mu.Unlock()
		c.reply, c.err = reply, err
		close(c.done)
	}
}

// checkDeadlines gives the connection up if a call waits for longer than it may. It
// is called by the timer, which isn't set anew for every call.
func (p *pipeline) checkDeadlines() {
	p.mu.Lock()
	p.fireAt = time.Time{}
	for _, c := range slices.Concat(p.sent, p.queue) {
		if p.fireAt.IsZero() || c.deadline.Before(p.fireAt) {
			p.fireAt = c.deadline
		}
	}
	left := time.Until(p.fireAt)
	if !p.fireAt.IsZero() && left > 0 {
		p.timer.Reset(left)
	}
	late := !p.fireAt.IsZero() && left <= 0
	p.mu.Unlock()
	if late {
		p.end(errLate)
	}
}

// end gives the connection up: every call that waits fails, and so do later ones.
func (p *pipeline) end(err error) {
	p.mu.Lock()
	if p.err != nil {
		p.mu.Unlock()
		return
	}
	p.err = err
	failed := slices.Concat(p.sent, p.queue)
	p.sent, p.queue = nil, nil
	p.timer.Stop()
	p.mu.Unlock()
	close(p.ended)
	for _, c := range failed {
		c.err = err
		close(c.done)
	}
	p.conn.Close() // ends a write and a read; over TLS this may take seconds
	p.onEnd()
}

// failure returns why the connection was given up, or nil if it wasn't.
func (p *pipeline) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}
