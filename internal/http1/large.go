package http1

import (
	"net"
	"runtime"
)

// largeWrite is the size of a write that takes so long that connections take turns.
// Copying it to a socket takes about as long as answering a few plain requests.
const largeWrite = 128 << 10

// writers limits how many connections copy a large response to their socket at once.
// Without it, hundreds of clients of large responses would keep all processors busy
// as soon as they read, and requests that arrive meanwhile would wait for all of them.
type writers chan struct{}

// newWriters leaves a processor to everything else, if there are several.
func newWriters() writers { return make(writers, max(1, runtime.GOMAXPROCS(0)-1)) }

// write writes b in pieces, each in a turn of its own, to a connection that is a
// socket. While the client doesn't read, it takes no turn.
func (w writers) write(c net.Conn, b []byte) (int, error) {
	if len(b) <= largeWrite {
		return c.Write(b)
	}
	n, ok, err := writePieces(c, b, func(write func()) {
		w <- struct{}{}
		defer func() { <-w }()
		write()
	})
	if !ok {
		return c.Write(b)
	}
	return n, err
}
