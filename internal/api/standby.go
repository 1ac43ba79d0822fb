package api

import "time"

// standby implements [db.Standby] for a request on a connection of package http1, which
// can send a response while the handler is running.
type standby struct {
	server *Server
	w      *response
	r      *request
	finish func() // sends the response

	timer *time.Timer
	done  chan struct{} // closed when the timer's function has returned
}

// newStandby returns nil if net/http serves the request.
func (s *Server) newStandby(w *response, r *request) *standby {
	conn, ok := w.ResponseWriter.(interface{ Finish() })
	if !ok {
		return nil
	}
	return &standby{server: s, w: w, r: r, finish: conn.Finish}
}

// Begin implements [db.Standby].
func (b *standby) Begin(giveUp func() error) {
	b.done = make(chan struct{})
	b.timer = time.AfterFunc(time.Until(b.r.ctx.deadline), func() {
		defer close(b.done)
		if err := giveUp(); err != nil {
			b.answer(err)
		}
	})
}

// End implements [db.Standby].
func (b *standby) End() {
	if !b.timer.Stop() {
		<-b.done
	}
}

// answer sends the response, unless an earlier write of the request took too long already.
// The connection can't be used for another request, because its goroutine is still busy
// with this one.
func (b *standby) answer(err error) {
	if b.w.status != 0 {
		return
	}
	b.w.set("Connection", "close")
	b.server.writeError(b.w, b.r, err)
	b.finish()
}
