package api

import (
	"errors"
	"net/http"
	"os"
	"strconv"
	"sync"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/events"
)

// streamBatch is how many events a stream sends before it checks whether it has to end.
const streamBatch = 200

// streamEvents sends events as they happen, as server-sent events, until the client
// disconnects, the server stops, or the key ends.
func (s *Server) streamEvents(w http.ResponseWriter, r *request, q *eventQuery) error {
	if s.draining.Load() {
		return animalstore.Errorf(animalstore.ShuttingDown, "this instance is shutting down: reconnect")
	}
	f, err := s.followers.addStream(r)
	if err != nil {
		setHeader(w, "Retry-After", strconv.Itoa(streamRetryAfter))
		return err
	}
	defer f.unregister()
	reader, err := s.openReader(r, q)
	if err != nil {
		return err
	}
	defer reader.Close()
	start := reader.Position()
	messages, more, err := reader.Read(r.Context(), streamBatch)
	if err != nil {
		return expiredError(err)
	}
	setHeader(w, "Content-Type", typeEventStream)
	setHeader(w, "Cache-Control", "no-store")
	setHeader(w, "X-Accel-Buffering", "no") // a proxy must not wait for more
	w.WriteHeader(http.StatusOK)
	if r.Method == http.MethodHead {
		return nil
	}
	began := time.Now()
	defer func() { r.waited += time.Since(began) }()
	st := &stream{server: s, w: w, r: r, control: http.NewResponseController(w), reader: reader, ended: f.ended}
	if st.begin(start) && st.send(messages) {
		st.run(more)
	}
	return nil
}

// stream is a stream of events that has begun.
type stream struct {
	server  *Server
	w       http.ResponseWriter
	r       *request
	control *http.ResponseController
	reader  *events.Reader
	ended   <-chan struct{}
	sent    int64 // the last id that the client knows of
}

// run sends events until the stream ends.
func (st *stream) run(more bool) {
	comment := time.NewTicker(followTimes.Comment)
	defer comment.Stop()
	retry := (<-chan time.Time)(nil) // set after an error
	for {
		next := st.reader.More()
		if retry != nil {
			next = nil
		}
		if more {
			next = alwaysReady
		}
		select {
		case <-st.ended:
			return
		case <-st.server.drainBegun:
			return
		case <-st.r.Request.Context().Done():
			return
		case <-comment.C:
			if !st.comment() {
				return
			}
			continue
		case <-next:
		case <-retry:
		}
		var messages []events.Message
		var err error
		st.r.restartClock()
		messages, more, err = st.reader.Read(st.r.Context(), streamBatch)
		retry = nil
		switch {
		case errors.Is(err, db.ErrEventsExpired):
			return // the next request says why
		case err != nil:
			retry = time.After(followTimes.Retry)
		case !st.send(messages):
			return
		}
	}
}

var alwaysReady = func() <-chan struct{} {
	c := make(chan struct{})
	close(c)
	return c
}()

// isOver reports whether the stream must end: its key has ended, or the server is stopping.
func (st *stream) isOver() bool { return isClosed(st.ended) || isClosed(st.server.drainBegun) }

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// begin tells the client its position, so that it can resume there even if it gets no
// event before the stream breaks.
func (st *stream) begin(position int64) bool {
	st.sent = position
	return st.write([]byte("retry: 1000\nid: " + strconv.FormatInt(position, 10) + "\n\n"))
}

// comment keeps the connection open while there is nothing to send, and tells the
// client its position if that has moved past events that don't match.
func (st *stream) comment() bool {
	b := []byte(":\n")
	if position := st.reader.Position(); position != st.sent {
		st.sent = position
		b = append(strconv.AppendInt(append(b, "id: "...), position, 10), '\n')
	}
	return st.write(append(b, '\n'))
}

func (st *stream) send(messages []events.Message) bool {
	if len(messages) == 0 {
		return true
	}
	st.sent = messages[len(messages)-1].ID
	if len(messages) == 1 {
		return st.write(messages[0].Frame())
	}
	// net/http would send 2 KiB at a time, each with a system call.
	var piece []byte
	for _, m := range messages {
		frame := m.Frame()
		if len(piece) > 0 && len(piece)+len(frame) > maxPiece {
			if !st.write(piece) {
				return false
			}
			piece = piece[:0]
		}
		piece = append(piece, frame...)
	}
	return st.write(piece)
}

// maxPiece is how much is sent at once, unless a single event is longer.
const maxPiece = 64 << 10

// write sends frames. It reports false if the client is gone or doesn't read, or if the
// stream must end.
func (st *stream) write(frames []byte) bool {
	if st.isOver() {
		return false
	}
	st.control.SetWriteDeadline(time.Now().Add(followTimes.Write))
	finish := st.interruptWhenOver()
	_, err := st.w.Write(frames)
	if err == nil {
		err = st.control.Flush()
	}
	if interrupted := finish(); err != nil {
		if !interrupted && errors.Is(err, os.ErrDeadlineExceeded) {
			st.server.followers.countCut()
		}
		return false
	}
	st.control.SetWriteDeadline(time.Time{}) // a stream may send nothing for a long time
	return true
}

// interruptWhenOver interrupts a blocked write when the stream must end, so that nobody
// waits for a client that doesn't read. Call finish after the write: it reports whether the
// write was interrupted.
func (st *stream) interruptWhenOver() (finish func() (interrupted bool)) {
	var mu sync.Mutex
	var interrupted bool
	finished := make(chan struct{})
	timer := time.AfterFunc(followTimes.Blocked, func() {
		select {
		case <-st.ended:
		case <-st.server.drainBegun:
		case <-finished:
		}
		mu.Lock()
		defer mu.Unlock()
		if !isClosed(finished) { // else the connection may belong to another request
			interrupted = true
			st.control.SetWriteDeadline(time.Now())
		}
	})
	return func() bool {
		timer.Stop()
		mu.Lock()
		defer mu.Unlock()
		close(finished)
		return interrupted
	}
}
