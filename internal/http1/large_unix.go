//go:build unix

package http1

import (
	"io"
	"net"
	"os"
	"syscall"
)

// writePieces writes b to a socket in pieces of largeWrite, each within a call of
// turn. It waits outside of them for room in the socket. ok is false if c is no socket.
func writePieces(c net.Conn, b []byte, turn func(write func())) (written int, ok bool, err error) {
	socket, ok := c.(syscall.Conn)
	if !ok {
		return 0, false, nil
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return 0, true, err
	}
	var failed error
	err = raw.Write(func(fd uintptr) (done bool) {
		for written < len(b) && failed == nil {
			full := false
			turn(func() {
				end := min(written+largeWrite, len(b))
				for written < end && failed == nil && !full {
					var n int
					n, full, failed = tryWrite(int(fd), b[written:end])
					written += n
				}
			})
			if full {
				return false
			}
		}
		return true
	})
	if err == nil {
		err = failed
	}
	return written, true, err
}

// tryWrite writes as much of b as there is room for. full means that there is none.
func tryWrite(fd int, b []byte) (n int, full bool, err error) {
	switch n, err = syscall.Write(fd, b); {
	case err == syscall.EAGAIN:
		return 0, true, nil
	case err == syscall.EINTR:
		return 0, false, nil
	case err != nil:
		return 0, false, os.NewSyscallError("write", err)
	case n == 0:
		return 0, false, io.ErrUnexpectedEOF
	}
	return n, false, nil
}
