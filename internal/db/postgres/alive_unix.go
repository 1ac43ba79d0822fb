//go:build unix

package postgres

import (
	"crypto/tls"
	"net"
	"syscall"
)

// alive reports, without a round trip, whether an idle connection is usable: the
// server hasn't closed it or sent a final message on it. The outcome of a write sent
// on a dead connection would be unknown.
func alive(c net.Conn) bool {
	if t, ok := c.(*tls.Conn); ok {
		c = t.NetConn()
	}
	if u, ok := c.(uncancelled); ok {
		c = u.Conn
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
	// Not raw.Read, which would wait for the driver: after a slow write, that still
	// has a read in progress.
	err = raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		silent = err == syscall.EAGAIN || err == syscall.EWOULDBLOCK
	})
	return err == nil && silent
}
