package testenv

import (
	"fmt"
	"syscall"
	"testing"
)

// RefusingAddress is a URL that refuses connections until the test ends. A socket without a
// listener has its port, which another process would else take one day.
func RefusingAddress(t testing.TB) string {
	t.Helper()
	return RefuseAt(t, 0)
}

// RefuseAt is RefusingAddress at a port: that of a server that has ended, so that its clients
// don't reach another.
func RefuseAt(t testing.TB, port int) string {
	t.Helper()
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(socket) })
	if err := syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Bind(socket, &syscall.SockaddrInet4{Port: port, Addr: [4]byte{127, 0, 0, 1}}); err != nil {
		t.Fatal(err)
	}
	address, err := syscall.Getsockname(socket)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("http://127.0.0.1:%d", address.(*syscall.SockaddrInet4).Port)
}
