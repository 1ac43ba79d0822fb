package server

import (
	"bytes"
	"log"
	"log/slog"
)

// errorLog receives what net/http reports on its own, one call per message. Mistakes
// of ours and failed accepts are errors. The rest is about clients that don't speak
// TLS or HTTP, which anybody on the internet can cause at any rate.
type errorLog struct{ log *slog.Logger }

func newErrorLog(l *slog.Logger) *log.Logger { return log.New(errorLog{l}, "", 0) }

var seriousErrors = [][]byte{
	[]byte("http: panic serving "),
	[]byte("http2: panic serving "),
	[]byte("http: Accept error: "),
}

func (w errorLog) Write(message []byte) (int, error) {
	text := string(bytes.TrimSuffix(message, []byte("\n")))
	for _, prefix := range seriousErrors {
		if bytes.HasPrefix(message, prefix) {
			w.log.Error(text)
			return len(message), nil
		}
	}
	w.log.Debug(text)
	return len(message), nil
}
