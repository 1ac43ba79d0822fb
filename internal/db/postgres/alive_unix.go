//go:build unix

package postgres

import (
	"crypto/tls"
	"net"
	"syscall"
)

// alive looks, without a round trip, whether the server has hung up on an idle
// connection or said a last word on it. Whoever sent a write on such a one could
// not tell whether it was done.
func alive(c net.Conn) bool {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	s, ok := c.(syscall.Conn)
	if !ok {
		return true
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	silent := false
	// Not raw.Read, which would wait its turn behind the driver: after a write
	// that took long, that keeps a reader waiting for what comes next.
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		silent = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
	})
	return err == nil && silent
}
