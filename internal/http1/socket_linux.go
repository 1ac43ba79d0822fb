package http1

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// dropSYN is a socket filter that drops the first packet of a new connection. On a TCP
// socket it sees packets starting with the TCP header, where byte 13 has the flags.
var dropSYN = []unix.SockFilter{
	{Code: unix.BPF_LD | unix.BPF_B | unix.BPF_ABS, K: 13},
	{Code: unix.BPF_ALU | unix.BPF_AND | unix.BPF_K, K: flagSYN | flagACK},
	{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: flagSYN, Jf: 1},
	{Code: unix.BPF_RET | unix.BPF_K, K: 0},
	{Code: unix.BPF_RET | unix.BPF_K, K: 1<<32 - 1},
}

const flagSYN, flagACK = 0x02, 0x10

// refuseNew stops new clients from connecting to l. Connections that are being set up
// are completed and can be accepted. It reports whether this works with l.
//
// A client that is turned away retries after a second. By then the socket should be
// closed, so that the connection is refused. Accepted connections inherit the filter,
// which does no harm.
func refuseNew(l net.Listener) bool {
	tcp, ok := l.Addr().(*net.TCPAddr)
	if !ok || tcp == nil {
		return false
	}
	program := unix.SockFprog{Len: uint16(len(dropSYN)), Filter: &dropSYN[0]}
	return control(l, func(fd int) error {
		return unix.SetsockoptSockFprog(fd, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, &program)
	})
}

// hasQueue reports whether connections are waiting to be accepted from l, a TCP socket.
func hasQueue(l net.Listener) bool {
	length := uint32(0)
	control(l, func(fd int) error {
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		if err == nil {
			length = info.Unacked // for a listening socket, the length of its queue
		}
		return err
	})
	return length > 0
}

// hasUnread reports whether c has bytes waiting to be read.
func hasUnread(c net.Conn) bool {
	n := 0
	control(c, func(fd int) (err error) {
		n, err = unix.IoctlGetInt(fd, unix.SIOCINQ)
		return err
	})
	return n > 0
}

// hasLeft reports whether the client of c, a TCP socket, has closed the connection or
// its sending half.
func hasLeft(c net.Conn) bool {
	left := false
	control(c, func(fd int) error {
		info, err := unix.GetsockoptTCPInfo(fd, unix.IPPROTO_TCP, unix.TCP_INFO)
		left = err == nil && info.State != unix.BPF_TCP_ESTABLISHED
		return err
	})
	return left
}

// control calls f with the socket of v, if it has one, and reports whether f
// succeeded.
func control(v any, f func(fd int) error) bool {
	socket, ok := v.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := socket.SyscallConn()
	if err != nil {
		return false
	}
	failed := error(syscall.EINVAL)
	err = raw.Control(func(fd uintptr) { failed = f(int(fd)) })
	return err == nil && failed == nil
}
