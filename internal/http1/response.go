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
	header http.Header

	mu       sync.Mutex
	response *response // nil once the handler has returned
}

var errReturned = errors.New("http1: the handler has returned")

// Header implements [http.ResponseWriter].
func (w *writer) Header() http.Header { return w.header }

// SetFixed adds fields to the response that aren't in Header: a map of more than
// eight fields takes twice the memory. Each is a name and its value. They are sorted
// by name and must not change any more.
func (w *writer) SetFixed(fields [][]string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.response != nil {
		w.response.fixed = fields
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

func (w *writer) detach() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.response = nil
}

// response is the response that a connection is currently sending. It buffers its
// output, so that a response of ordinary size takes one write.
type response struct {
	conn   *conn
	header http.Header
	sorted []field    // the header, sorted by name
	fixed  [][]string // fields besides the header, sorted by name

	method   string
	status   int       // 0 until WriteHeader
	began    time.Time // when WriteHeader was called
	declared int64     // Content-Length as set by the handler, or -1
	last     bool      // the handler wants the connection closed
	written  int64     // bytes of the body
	headEnd  int       // where the header ends in out, before the empty line
	out      []byte
	pooled   *[]byte // the buffer that out started with
	err      error   // the first error while sending
}

type field struct {
	name   string
	values []string
}

// flushSize is the size at which a response is sent before it is complete.
const flushSize = 64 << 10

var buffers = sync.Pool{New: func() any { return new([]byte) }}

// reset starts the response to the next request. The header is probably as large as
// the one before.
func (w *response) reset(method string) {
	pooled := buffers.Get().(*[]byte)
	*w = response{
		conn: w.conn, header: make(http.Header, len(w.sorted)), sorted: w.sorted,
		method: method, declared: -1, out: *pooled, pooled: pooled,
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
	w.checkHeader()
	b := append(w.out, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, ' ')
	b = append(b, statusText(status)...)
	b = append(b, "\r\n"...)
	w.sortFields()
	b = w.appendFields(b)
	if _, ok := w.header["Date"]; !ok {
		b = append(b, dateField(w.began)...)
	}
	w.headEnd = len(b)
	w.out = append(b, "\r\n"...)
}

// appendFields appends the header and the fixed fields, sorted by name.
func (w *response) appendFields(b []byte) []byte {
	fixed := w.fixed
	for _, f := range w.sorted {
		for len(fixed) > 0 && fixed[0][0] < f.name {
			b, fixed = appendField(b, fixed[0][0], fixed[0][1]), fixed[1:]
		}
		for _, value := range f.values {
			b = appendField(b, f.name, value)
		}
	}
	for _, f := range fixed {
		b = appendField(b, f[0], f[1])
	}
	return b
}

func statusText(status int) string {
	if text := http.StatusText(status); text != "" {
		return text
	}
	return "status code " + strconv.Itoa(status)
}

// checkHeader handles the fields that define where the response ends and whether
// another can follow it.
func (w *response) checkHeader() {
	delete(w.header, "Transfer-Encoding")
	if values, ok := w.header["Content-Length"]; ok {
		n, err := uint64(0), error(strconv.ErrSyntax)
		if len(values) == 1 {
			n, err = strconv.ParseUint(values[0], 10, 63)
		}
		if err == nil && w.mayHaveBody() {
			w.declared = int64(n)
		} else {
			delete(w.header, "Content-Length")
		}
	}
	if w.status == http.StatusNotModified {
		delete(w.header, "Content-Type")
	}
	for _, value := range w.header["Connection"] {
		w.last = w.last || strings.EqualFold(value, "close")
	}
}

// sortFields sorts the header by name. If its names are those of the previous
// response, they are sorted already.
func (w *response) sortFields() {
	if len(w.sorted) == len(w.header) && w.sameNames() {
		return
	}
	sorted := w.sorted[:0]
	for name, values := range w.header {
		if name != "" && consistsOf(name, inName) {
			sorted = append(sorted, field{name, values})
		}
	}
	slices.SortFunc(sorted, func(a, b field) int { return strings.Compare(a.name, b.name) })
	w.sorted = sorted
}

func (w *response) sameNames() bool {
	for i := range w.sorted {
		f := &w.sorted[i]
		if f.values = w.header[f.name]; f.values == nil {
			return false
		}
	}
	return true
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
	w.out = append(w.out, b...)
	if w.declared >= 0 && len(w.out) > flushSize {
		w.send()
	}
	return len(b), w.err
}

func (w *response) mayHaveBody() bool {
	return w.status != http.StatusNoContent && w.status != http.StatusNotModified
}

// finish sends the rest of the response and reports whether the connection can be
// used for another.
func (w *response) finish() bool {
	w.writeHeader(http.StatusOK)
	head := w.method == http.MethodHead
	if w.declared < 0 && w.mayHaveBody() && !(head && w.written == 0) {
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
	if w.err == nil {
		_, w.err = w.conn.Write(w.out)
	}
	w.out = w.out[:0]
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
