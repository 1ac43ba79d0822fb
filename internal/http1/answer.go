package http1

import (
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// answer is the [http.ResponseWriter] of plain requests. It collects what is to
// be sent, so that an answer of ordinary size is one write.
type answer struct {
	conn   *conn
	header http.Header
	names  []string // of the header, to sort them

	method   string
	status   int   // 0 until the head is written
	declared int64 // Content-Length as the handler set it, or -1
	written  int64 // of the body
	headEnd  int   // where in out the head ends, but for the empty line
	out      []byte
	lent     *[]byte // the buffer that out began with
	err      error   // of a write
}

// flushSize is the size of an answer that is not collected any longer.
const flushSize = 64 << 10

var buffers = sync.Pool{New: func() any { return new([]byte) }}

func (a *answer) init(c *conn) { a.conn, a.header = c, http.Header{} }

func (a *answer) reset(method string) {
	clear(a.header)
	lent := buffers.Get().(*[]byte)
	*a = answer{
		conn: a.conn, header: a.header, names: a.names,
		method: method, declared: -1, out: *lent, lent: lent,
	}
}

// Header implements [http.ResponseWriter].
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements [http.ResponseWriter].
func (a *answer) WriteHeader(status int) {
	if a.status != 0 || status < 200 {
		return
	}
	a.status = status
	if !a.mayHaveBody() { // nor say anything of one
		delete(a.header, "Content-Length")
	}
	if status == http.StatusNotModified {
		delete(a.header, "Content-Type")
	}
	b := append(a.out, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, ' ')
	b = append(b, http.StatusText(status)...)
	b = append(b, "\r\n"...)
	a.names = a.names[:0]
	for name := range a.header {
		a.names = append(a.names, name)
	}
	slices.Sort(a.names)
	for _, name := range a.names {
		for _, value := range a.header[name] {
			b = appendField(b, name, value)
		}
	}
	if a.header["Date"] == nil {
		b = append(b, dateField(time.Now())...)
	}
	if length := a.header["Content-Length"]; length != nil {
		a.declared, a.err = strconv.ParseInt(length[0], 10, 64)
	}
	a.headEnd = len(b)
	a.out = append(b, "\r\n"...)
}

func appendField(b []byte, name, value string) []byte {
	b = append(append(b, name...), ": "...)
	start := len(b)
	b = append(b, value...)
	for i, c := range b[start:] {
		if c == '\r' || c == '\n' { // would end the field
			b[start+i] = ' '
		}
	}
	return append(b, "\r\n"...)
}

// Write implements [http.ResponseWriter].
func (a *answer) Write(b []byte) (int, error) {
	a.WriteHeader(http.StatusOK)
	if !a.mayHaveBody() {
		return 0, http.ErrBodyNotAllowed
	}
	a.written += int64(len(b))
	if a.declared >= 0 && a.written > a.declared {
		return 0, http.ErrContentLength
	}
	if a.method == http.MethodHead {
		return len(b), nil
	}
	a.out = append(a.out, b...)
	if a.declared >= 0 && len(a.out) > flushSize {
		a.send()
	}
	return len(b), a.err
}

func (a *answer) mayHaveBody() bool {
	return a.status != http.StatusNoContent && a.status != http.StatusNotModified
}

// finish sends what is left, and reports whether the connection can go on.
func (a *answer) finish() bool {
	a.WriteHeader(http.StatusOK)
	if a.declared < 0 && a.mayHaveBody() {
		a.declared = a.written
		field := appendField(nil, "Content-Length", strconv.FormatInt(a.written, 10))
		a.out = slices.Insert(a.out, a.headEnd, field...)
	}
	whole := a.method == http.MethodHead || !a.mayHaveBody() || a.written == a.declared
	a.send()
	if cap(a.out) <= flushSize {
		*a.lent = a.out[:0]
		buffers.Put(a.lent)
	}
	a.out, a.lent = nil, nil
	return whole && a.err == nil && a.header["Connection"] == nil
}

func (a *answer) send() {
	if a.err == nil {
		_, a.err = a.conn.Write(a.out)
	}
	a.out = a.out[:0]
}

// date is the Date field of the last answer.
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
