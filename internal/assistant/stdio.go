package assistant

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// maxMessage is the size of a request on standard input, in bytes: that of a request to
// the API.
const maxMessage = 1 << 20

// Serve serves one assistant that writes its requests to in, each on a line, and reads the
// responses from out, until in ends.
func (a *Assistant) Serve(ctx context.Context, in io.ReadCloser, out io.WriteCloser, c *Caller) error {
	responses := &lockedWriter{WriteCloser: out}
	messages := &validMessages{Closer: in, lines: bufio.NewScanner(in), responses: responses}
	messages.lines.Buffer(nil, maxMessage)
	return a.server.Run(withCaller(ctx, c), &mcp.IOTransport{Reader: messages, Writer: responses})
}

// validMessages passes on the messages that are valid, and responds to the others.
type validMessages struct {
	io.Closer
	lines     *bufio.Scanner
	responses io.Writer
	unread    []byte
}

func (m *validMessages) Read(p []byte) (int, error) {
	for len(m.unread) == 0 {
		if err := m.next(); err != nil {
			return 0, err
		}
	}
	n := copy(p, m.unread)
	m.unread = m.unread[n:]
	return n, nil
}

// next reads a line.
func (m *validMessages) next() error {
	if !m.lines.Scan() {
		if m.lines.Err() == bufio.ErrTooLong {
			return fmt.Errorf("a message must have at most %d bytes", maxMessage)
		}
		return cmp.Or(m.lines.Err(), io.EOF)
	}
	line := m.lines.Bytes()
	if len(bytes.TrimSpace(line)) == 0 {
		return nil
	}
	_, invalid := checkMessage(line)
	switch {
	case invalid == nil:
		m.unread = append(bytes.Clone(line), '\n')
	case !json.Valid(line): // where the next message begins isn't known
		return errors.New(invalid.Message)
	default:
		_, err := m.responses.Write(append(encode(errorResponse{"2.0", nil, invalid}), '\n'))
		return err
	}
	return nil
}

// lockedWriter lets several goroutines write messages.
type lockedWriter struct {
	io.WriteCloser
	mu sync.Mutex
}

func (w *lockedWriter) Write(message []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.WriteCloser.Write(message)
}
