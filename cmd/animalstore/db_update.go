package main

import (
	"io"
	"log/slog"
	"strconv"
	"sync"
	"time"

	"animalstore/internal/db"
	"animalstore/internal/terminal"
)

// showUpdate returns a function that shows how far an update of the tables is, for a
// command, and one that ends it.
func showUpdate(w io.Writer) (progress func(db.Update), end func()) {
	var step string
	var bar *terminal.Progress
	clearStep := func() {}
	progress = func(u db.Update) {
		switch {
		case u.Step == step && bar != nil:
			bar.Add(int(u.Done - bar.Done()))
		case u.Step == step:
		case u.Total > 0:
			clearStep()
			bar = terminal.NewProgress(w, u.Total, "pets")
			bar.AddDone(u.Done)
			step, clearStep = u.Step, bar.Clear
		default:
			clearStep()
			step, bar, clearStep = u.Step, nil, terminal.ShowElapsed(w, "Updating the tables: "+u.Step)
		}
	}
	return progress, func() { clearStep() }
}

const (
	// updateEvery is how often a server logs how far an update of its tables is.
	updateEvery = 5 * time.Second
	// updateGrace is how much longer systemd waits for the start each time. It is much
	// longer than updateEvery, because the disk may be busy.
	updateGrace = time.Minute
)

// startupUpdate tells the log and systemd how far an update of the tables is while a server
// starts: in a large store it takes longer than systemd waits for a start.
type startupUpdate struct {
	log    *slog.Logger
	socket string // of systemd, or ""

	mu      sync.Mutex
	latest  db.Update
	stopped chan struct{} // nil until the update begins
	ended   sync.WaitGroup
}

// show is called with every step of the update.
func (s *startupUpdate) show(u db.Update) {
	s.mu.Lock()
	defer s.mu.Unlock()
	begins, next := s.stopped == nil, u.Step != s.latest.Step
	s.latest = u
	if begins {
		s.log.Info("updating the tables of the database: requests are served when this is done. If it is interrupted, the next start continues")
		s.stopped = make(chan struct{})
		s.ended.Go(func() { s.repeat(s.stopped) })
	}
	if begins || next {
		s.tell()
	}
}

// repeat tells the latest state from time to time.
func (s *startupUpdate) repeat(stopped <-chan struct{}) {
	tick := time.NewTicker(updateEvery)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			s.mu.Lock()
			s.tell()
			s.mu.Unlock()
		case <-stopped:
			return
		}
	}
}

func (s *startupUpdate) tell() {
	text := s.latest.Step
	if s.latest.Total > 0 {
		s.log.Info("updating the tables: "+text, "done", s.latest.Done, "total", s.latest.Total)
		text += ": " + terminal.Grouped(s.latest.Done) + " of " + terminal.Grouped(s.latest.Total) + " pets"
	} else {
		s.log.Info("updating the tables: " + text)
	}
	notify(s.socket, "EXTEND_TIMEOUT_USEC="+strconv.FormatInt(updateGrace.Microseconds(), 10)+"\nSTATUS=Updating the tables: "+text, s.log)
}

// stop ends the reports.
func (s *startupUpdate) stop() {
	s.mu.Lock()
	stopped := s.stopped
	s.mu.Unlock()
	if stopped != nil {
		close(stopped)
		s.ended.Wait()
		notify(s.socket, "STATUS=", s.log)
	}
}
