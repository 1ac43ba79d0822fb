package http1

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// writer is the [http.ResponseWriter] of one simple request. It buffers its output, so
// that a response of ordinary size takes one write. A handler may keep it and use it
// later, even from another goroutine: it writes nothing after the handler has returned.
type writer struct {
	mu       sync.Mutex
	conn     *conn // nil once the handler has returned
	header   http.Header
	method   string
	status   int     // 0 until WriteHeader
	declared int64   // Content-Length as set by the handler, or -1
	last     bool    // the handler wants the connection closed
	written  int64   // bytes of the body
	headEnd  int     // where the header ends in out, before the empty line
	buffer   *buffer // where out starts
	out      []byte
	err      error // the first error while sending
}

var errReturned = errors.New("http1: the handler has returned")

// buffers have room for most responses. A larger one gets memory that is not reused.
// Without them, first pages would take a quarter more CPU time.
var buffers = sync.Pool{New: func() any { return new(buffer) }}

type buffer [4 << 10]byte

// flushSize is the size above which what a handler writes is sent at once, instead of being
// copied behind the header.
const flushSize = 64 << 10

// Header implements [http.ResponseWriter].
func (w *writer) Header() http.Header { return w.header }

// WriteHeader implements [http.ResponseWriter].
func (w *writer) WriteHeader(status int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn != nil {
		w.writeHeader(status)
	}
}

// Write implements [http.ResponseWriter].
func (w *writer) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.conn == nil {
		return 0, errReturned
	}
	return w.write(b)
}

func (w *writer) writeHeader(status int) {
	if w.status != 0 {
		return
	}
	if status < 200 || status > 999 {
		panic(fmt.Sprintf("http1: invalid response status %d", status))
	}
	w.status = status
	now := time.Now()
	w.conn.SetWriteDeadline(deadlineAfter(now, w.conn.server.http.WriteTimeout))
	w.inspectHeader()
	b := append(w.buffer[:0], "HTTP/1.1 "...)
	b = strconv.AppendInt(b, int64(status), 10)
	b = append(b, ' ')
	b = append(b, statusText(status)...)
	b = append(b, "\r\n"...)
	b = w.appendHeader(b)
	if _, set := w.header["Date"]; !set { // a Date without a value means none
		b = append(b, "Date: "...)
		b = now.UTC().AppendFormat(b, http.TimeFormat)
		b = append(b, "\r\n"...)
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

// inspectHeader finds the fields that determine where the response ends and whether
// another can follow.
func (w *writer) inspectHeader() {
	// Of several lengths, none can be trusted.
	if lengths := w.header["Content-Length"]; len(lengths) == 1 && w.mayHaveBody() {
		if n, err := strconv.ParseUint(lengths[0], 10, 63); err == nil {
			w.declared = int64(n)
		}
	}
	for _, value := range w.header["Connection"] {
		w.last = w.last || strings.EqualFold(value, "close")
	}
}

// appendHeader appends the fields sorted by name, like net/http, and leaves out those
// that must not be sent.
func (w *writer) appendHeader(b []byte) []byte {
	names := make([]string, 0, 2*usualFields) // on the stack
	for name := range w.header {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		switch {
		case name == "" || !consistsOf(name, inName):
			continue
		case name == "Transfer-Encoding":
			continue
		case name == "Content-Length" && w.declared < 0:
			continue
		case name == "Content-Type" && w.status == http.StatusNotModified:
			continue
		}
		for _, value := range w.header[name] {
			b = appendField(b, name, value)
		}
	}
	return b
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

func (w *writer) write(b []byte) (int, error) {
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
	if w.declared >= 0 && len(b) > flushSize {
		w.send()
		w.sendBytes(b)
		return len(b), w.err
	}
	w.out = append(w.out, b...)
	return len(b), w.err
}

func (w *writer) mayHaveBody() bool {
	return w.status != http.StatusNoContent && w.status != http.StatusNotModified
}

// headLength is the largest body whose length net/http adds to a HEAD response if the
// handler didn't set it: the size of its buffer.
const headLength = 2048

// finish sends the rest of the response and reports whether the connection can be used
// again.
func (w *writer) finish() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writeHeader(http.StatusOK)
	head := w.method == http.MethodHead
	if w.declared < 0 && w.mayHaveBody() && !(head && (w.written == 0 || w.written > headLength)) {
		w.declared = w.written
		field := appendField(nil, "Content-Length", strconv.FormatInt(w.written, 10))
		w.out = slices.Insert(w.out, w.headEnd, field...)
	}
	complete := head || !w.mayHaveBody() || w.written == w.declared
	w.send()
	return complete && !w.last && w.err == nil
}

// detach separates the writer from the connection and its buffer.
func (w *writer) detach() {
	w.mu.Lock()
	defer w.mu.Unlock()
	buffers.Put(w.buffer)
	w.conn, w.buffer, w.out = nil, nil, nil
}

func (w *writer) send() {
	w.sendBytes(w.out)
	w.out = w.out[:0]
}

func (w *writer) sendBytes(b []byte) {
	if w.err == nil && len(b) > 0 {
		_, w.err = w.conn.Write(b)
	}
}
