package http1

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// writer is the [http.ResponseWriter] of one plain request. A handler may keep it
// and use it later, also from another goroutine: once the handler has returned, it
// writes nothing more.
type writer struct {
	mu       sync.Mutex
	header   http.Header // nil until the handler asks for it
	response *response   // nil once the handler has returned
	reuse    bool        // see Reuse
}

var errReturned = errors.New("http1: the handler has returned")

// Header implements [http.ResponseWriter].
func (w *writer) Header() http.Header {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.header == nil {
		w.header = http.Header{}
		if w.response != nil {
			w.response.header = w.header
		}
	}
	return w.header
}

// SetFields adds fields to the response that aren't in Header, each a name and its
// value: a response with no others needs no map. They must not change before
// WriteHeader has returned.
func (w *writer) SetFields(fields [][2]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.response != nil {
		w.response.extra = fields
	}
}

// WriteHeader implements [http.ResponseWriter].
func (w *writer) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.response != nil {
		w.response.writeHeader(status)
	}
}

// Write implements [http.ResponseWriter].
func (w *writer) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.response == nil {
		return 0, errReturned
	}
	return w.response.write(b)
}

// Finish sends the response and closes the connection, although the handler is still
// running. It may be called by another goroutine while the handler waits for that.
func (w *writer) Finish() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.response == nil {
		return
	}
	w.response.finish()
	w.response.conn.Close()
	w.response = nil
}

// Reuse says that when the handler has returned, nothing will use what it was given: the
// writer, the request, its header, URL and context. The memory can then serve another
// request. A handler that can't be sure of that must not call it.
func (w *writer) Reuse() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.reuse = true
}

// detach separates the writer from the connection, and reports whether Reuse was called.
func (w *writer) detach() (reuse bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.response = nil
	return w.reuse
}

// response is the response that a connection is currently sending. It buffers its
// output, so that a response of ordinary size takes one write.
type response struct {
	conn   *conn
	header http.Header // as set by the handler; nil if it never asked for it
	extra  [][2]string // further fields
	fields [][2]string // room for both
	order  []int       // the positions of both, sorted by name
	names  []string    // of the fields that order was made for

	method   string
	status   int       // 0 until WriteHeader
	began    time.Time // when WriteHeader was called
	declared int64     // Content-Length as set by the handler, or -1
	lengths  int       // how many Content-Length fields the handler set
	dated    bool      // the handler set Date
	last     bool      // the handler wants the connection closed
	written  int64     // bytes of the body
	headEnd  int       // where the header ends in out, before the empty line
	out      []byte
	pooled   *[]byte // the buffer that out started with
	err      error   // the first error while sending
	finished bool    // it was sent
}

// flushSize is the size at which a response is sent before it is complete.
const flushSize = 64 << 10

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// reset starts the response to the next request.
func (w *response) reset(method string) {
	*w = response{
		conn: w.conn, fields: w.fields[:0], order: w.order, names: w.names,
		method: method, declared: -1,
	}
}

func (w *response) writeHeader(status int) {
	if w.status != 0 {
		return
	}
	if status < 200 || status > 999 {
		panic(fmt.Sprintf("http1: invalid response status %d", status))
	}
	w.status = status
	w.began = time.Now()
	w.conn.SetWriteDeadline(deadlineAfter(w.began, w.conn.listener.server.WriteTimeout))
	fields := w.collectFields()
	w.inspect(fields)
	w.pooled = buffers.Get().(*[]byte) // not before, because requests wait in their handlers
	b := append(*w.pooled, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, ' ')
	b = append(b, statusText(status)...)
	b = append(b, "\r\n"...)
	b = w.appendFields(b, fields)
	if !w.dated {
		b = append(b, dateField(w.began)...)
	}
	w.headEnd = len(b)
	w.out = append(b, "\r\n"...)
}

func statusText(status int) string {
	if text := http.StatusText(status); text != "" {
		return text
	}
	return "status code " + strconv.Itoa(status)
}

// collectFields returns the fields of the response and puts their positions in the
// order of their names. The fields themselves aren't moved: that would take longer than
// sending them, because the garbage collector watches every string.
func (w *response) collectFields() [][2]string {
	fields := w.extra
	if len(w.header) > 0 {
		fields = append(w.fields[:0], w.extra...)
		for name, values := range w.header {
			if name != "" && consistsOf(name, inName) {
				for _, value := range values {
					fields = append(fields, [2]string{name, value})
				}
			}
		}
		_, w.dated = w.header["Date"] // without a value it means that there should be none
		w.fields = fields
	}
	w.sortFields(fields)
	return fields
}

// sortFields puts the positions of fields in the order of their names. Most responses
// on a connection have the same names as the one before, so it keeps their order.
func (w *response) sortFields(fields [][2]string) {
	if w.haveNames(fields) {
		return
	}
	w.order, w.names = w.order[:0], w.names[:0]
	for i := range fields {
		w.order, w.names = append(w.order, i), append(w.names, fields[i][0])
	}
	slices.SortStableFunc(w.order, func(a, b int) int { return strings.Compare(w.names[a], w.names[b]) })
}

// haveNames reports whether fields have the names that order was made for.
func (w *response) haveNames(fields [][2]string) bool {
	if len(fields) != len(w.names) {
		return false
	}
	for i := range fields {
		if fields[i][0] != w.names[i] {
			return false
		}
	}
	return true
}

// inspect looks for the fields that define where the response ends and whether another
// can follow it.
func (w *response) inspect(fields [][2]string) {
	for i := range fields {
		switch f := &fields[i]; f[0] {
		case "Content-Length":
			w.lengths++
			if n, err := strconv.ParseUint(f[1], 10, 63); err == nil && w.mayHaveBody() {
				w.declared = int64(n)
			}
		case "Connection":
			w.last = w.last || strings.EqualFold(f[1], "close")
		case "Date":
			w.dated = true
		}
	}
	if w.lengths > 1 { // nobody can tell which is right
		w.declared = -1
	}
}

// appendFields appends the fields in their order, except those that must not be sent.
func (w *response) appendFields(b []byte, fields [][2]string) []byte {
	for _, i := range w.order {
		f := &fields[i]
		switch f[0] {
		case "Transfer-Encoding":
			continue
		case "Content-Length":
			if w.declared < 0 {
				continue
			}
		case "Content-Type":
			if w.status == http.StatusNotModified {
				continue
			}
		}
		b = appendField(b, f[0], f[1])
	}
	return b
}

func appendField(b []byte, name, value string) []byte {
	b = append(append(b, name...), ": "...)
	start := len(b)
	b = append(b, value...)
	if strings.IndexByte(value, '\r') >= 0 || strings.IndexByte(value, '\n') >= 0 {
		for i, c := range b[start:] {
			if c == '\r' || c == '\n' { // it would end the field
				b[start+i] = ' '
			}
		}
	}
	return append(b, "\r\n"...)
}

func (w *response) write(b []byte) (int, error) {
	w.writeHeader(http.StatusOK)
	switch {
	case len(b) == 0:
		return 0, nil
	case !w.mayHaveBody():
		return 0, http.ErrBodyNotAllowed
	}
	w.written += int64(len(b))
	if w.declared >= 0 && w.written > w.declared {
		return 0, http.ErrContentLength
	}
	if w.method == http.MethodHead {
		return len(b), nil
	}
	if w.declared >= 0 && len(b) > flushSize { // too large to copy
		w.send()
		w.sendBytes(b)
		return len(b), w.err
	}
	w.out = append(w.out, b...)
	if w.declared >= 0 && len(w.out) > flushSize {
		w.send()
	}
	return len(b), w.err
}

func (w *response) mayHaveBody() bool {
	return w.status != http.StatusNoContent && w.status != http.StatusNotModified
}

// headLength is the largest body whose length net/http puts into a response to HEAD if
// the handler didn't set it: the size of its buffer.
const headLength = 2048

// finish sends the rest of the response and reports whether the connection can be
// used for another.
func (w *response) finish() bool {
	if w.finished { // by Finish
		return false
	}
	w.finished = true
	w.writeHeader(http.StatusOK)
	head := w.method == http.MethodHead
	if w.declared < 0 && w.mayHaveBody() && !(head && (w.written == 0 || w.written > headLength)) {
		w.declared = w.written
		field := appendField(nil, "Content-Length", strconv.FormatInt(w.written, 10))
		w.out = slices.Insert(w.out, w.headEnd, field...)
	}
	complete := head || !w.mayHaveBody() || w.written == w.declared
	w.send()
	if cap(w.out) <= flushSize {
		*w.pooled = w.out
		buffers.Put(w.pooled)
	}
	w.out, w.pooled = nil, nil
	return complete && !w.last && w.err == nil
}

func (w *response) send() {
	w.sendBytes(w.out)
	w.out = w.out[:0]
}

func (w *response) sendBytes(b []byte) {
	if w.err == nil && len(b) > 0 {
		_, w.err = w.conn.Write(b)
	}
}

// date is the Date field of the most recent response.
var date atomic.Pointer[struct {
	second int64
	field  string
}]

func dateField(now time.Time) string {
	d := date.Load()
	if second := now.Unix(); d == nil || d.second != second {
		d = &struct {
			second int64
			field  string
		}{second, "Date: " + now.UTC().Format(http.TimeFormat) + "\r\n"}
		date.Store(d)
	}
	return d.field
}
