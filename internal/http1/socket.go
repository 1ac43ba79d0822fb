package http1

import (
	"errors"
	"net"
	"time"
)

// socket is a connection as it was accepted, underneath TLS if there is any. Its
// timers are seldom set, and it takes turns with others to send large responses.
type socket struct {
	net.Conn
	conn        *conn // that it belongs to
	read, write deadline
}

func (s *socket) Read(b []byte) (int, error) {
	for {
		n, err := s.Conn.Read(b)
		if err == nil || !s.read.extend(err) {
			return n, err
		}
	}
}

func (s *socket) Write(b []byte) (written int, err error) {
	for {
		n, err := s.conn.listener.writers.write(s.Conn, b[written:])
		written += n
		if err == nil || !s.write.extend(err) {
			return written, err
		}
	}
}

func (s *socket) SetReadDeadline(t time.Time) error  { return s.read.set(t) }
func (s *socket) SetWriteDeadline(t time.Time) error { return s.write.set(t) }

func (s *socket) SetDeadline(t time.Time) error {
	return errors.Join(s.SetReadDeadline(t), s.SetWriteDeadline(t))
}

// CloseWrite lets net/http close its side of the connection first.
func (s *socket) CloseWrite() error { return closeWrite(s.Conn) }

func closeWrite(c net.Conn) error {
	if half, ok := c.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

func (s *socket) Close() error {
	l := s.conn.listener
	l.mu.Lock()
	delete(l.conns, s.conn)
	l.mu.Unlock()
	return s.Conn.Close()
}
