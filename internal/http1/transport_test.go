package http1

import (
	"bufio"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"animalstore/internal/testenv"
)

// dial connects to l.
func dial(t testing.TB, l *Server) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", l.inner.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(testenv.Deadline))
	return c
}

// duplex is one end of a connection in memory, whose directions are closed separately as
// those of TCP.
type duplex struct {
	net.Conn // what it reads from
	out      net.Conn
}

func (d *duplex) Write(b []byte) (int, error)         { return d.out.Write(b) }
func (d *duplex) SetWriteDeadline(at time.Time) error { return d.out.SetWriteDeadline(at) }
func (d *duplex) CloseWrite() error                   { return d.out.Close() }
func (d *duplex) Close() error                        { return errors.Join(d.Conn.Close(), d.out.Close()) }

func (d *duplex) SetDeadline(at time.Time) error {
	return errors.Join(d.SetReadDeadline(at), d.SetWriteDeadline(at))
}

// talk sends the pieces to a server in this bubble, which reads them separately, and returns
// its responses.
func talk(server testenv.Pipes, pieces ...string) (responses string) {
	toServer, request := net.Pipe()
	toClient, response := net.Pipe()
	server.Conns <- &duplex{toServer, response}
	c := &duplex{toClient, request}
	var sender sync.WaitGroup
	defer sender.Wait()
	defer c.Close()
	sender.Go(func() {
		for _, piece := range pieces {
			if piece == "" {
				continue // a pipe would deliver it
			}
			if _, err := io.WriteString(c, piece); err != nil {
				return // the server closed the connection
			}
			time.Sleep(time.Millisecond) // the server has done what it can
		}
		c.CloseWrite()
	})
	for br := bufio.NewReaderSize(c, 64<<10); ; {
		text, err := readResponse(br)
		if text != "" {
			responses += text + "\n"
		}
		if err != nil {
			return responses
		}
	}
}
