package http1

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// answer is the [http.ResponseWriter] of plain requests. It collects what is to
// be sent, so that an answer of ordinary size is one write.
type answer struct {
	conn   *conn
	header http.Header
	fields []field // the header's, sorted by name

	method   string
	status   int       // 0 until the head is written
	began    time.Time // when it was
	declared int64     // Content-Length as the handler set it, or -1
	last     bool      // the handler wants the connection closed
	written  int64     // of the body
	headEnd  int       // where in out the head ends, but for the empty line
	out      []byte
	lent     *[]byte // the buffer that out began with
	err      error   // of sending
}

type field struct {
	name   string
	values []string
}

// flushSize is the size of an answer that is not collected any longer.
const flushSize = 64 << 10

var buffers = sync.Pool{New: func() any { return new([]byte) }}

func (a *answer) init(c *conn) { a.conn, a.header = c, http.Header{} }

func (a *answer) reset(method string) {
	clear(a.header)
	lent := buffers.Get().(*[]byte)
	*a = answer{
		conn: a.conn, header: a.header, fields: a.fields,
		method: method, declared: -1, out: *lent, lent: lent,
	}
}

// Header implements [http.ResponseWriter].
func (a *answer) Header() http.Header { return a.header }

// WriteHeader implements [http.ResponseWriter].
func (a *answer) WriteHeader(status int) {
	if a.status != 0 {
		return
	}
	if status < 200 || status > 999 {
		panic(fmt.Sprintf("http1: cannot answer with status %d", status))
	}
	a.status = status
	a.began = time.Now()
	a.conn.SetWriteDeadline(in(a.conn.listener.server.WriteTimeout, a.began))
	a.checkHeader()
	b := append(a.out, "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, ' ')
	b = append(b, statusText(status)...)
	b = append(b, "\r\n"...)
	a.sortFields()
	for _, f := range a.fields {
		for _, value := range f.values {
			b = appendField(b, f.name, value)
		}
	}
	if _, ok := a.header["Date"]; !ok {
		b = append(b, dateField(a.began)...)
	}
	a.headEnd = len(b)
	a.out = append(b, "\r\n"...)
}

func statusText(status int) string {
	if text := http.StatusText(status); text != "" {
		return text
	}
	return "status code " + strconv.Itoa(status)
}

// checkHeader sees to the fields that say where the answer ends, and what comes
// after it.
func (a *answer) checkHeader() {
	delete(a.header, "Transfer-Encoding")
	if values, ok := a.header["Content-Length"]; ok {
		n, err := uint64(0), error(strconv.ErrSyntax)
		if len(values) == 1 {
			n, err = strconv.ParseUint(values[0], 10, 63)
		}
		if err == nil && a.mayHaveBody() {
			a.declared = int64(n)
		} else {
			delete(a.header, "Content-Length")
		}
	}
	if a.status == http.StatusNotModified {
		delete(a.header, "Content-Type")
	}
	for _, value := range a.header["Connection"] {
		a.last = a.last || strings.EqualFold(value, "close")
	}
}

// sortFields puts the header into order. It often has the same names as the one
// before, which are in order already.
func (a *answer) sortFields() {
	if len(a.fields) == len(a.header) && a.sameNames() {
		return
	}
	a.fields = a.fields[:0]
	for name, values := range a.header {
		if name != "" && all(name, inName) {
			a.fields = append(a.fields, field{name, values})
		}
	}
	slices.SortFunc(a.fields, func(a, b field) int { return strings.Compare(a.name, b.name) })
}

func (a *answer) sameNames() bool {
	for i := range a.fields {
		f := &a.fields[i]
		if f.values = a.header[f.name]; f.values == nil {
			return false
		}
	}
	return true
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
	switch {
	case len(b) == 0:
		return 0, nil
	case !a.mayHaveBody():
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
	head := a.method == http.MethodHead
	if a.declared < 0 && a.mayHaveBody() && !(head && a.written == 0) {
		a.declared = a.written
		field := appendField(nil, "Content-Length", strconv.FormatInt(a.written, 10))
		a.out = slices.Insert(a.out, a.headEnd, field...)
	}
	whole := head || !a.mayHaveBody() || a.written == a.declared
	a.send()
	if cap(a.out) <= flushSize {
		*a.lent = a.out
		buffers.Put(a.lent)
	}
	a.out, a.lent = nil, nil
	return whole && !a.last && a.err == nil
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
