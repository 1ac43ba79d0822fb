package server

import (
	"fmt"
	"net"
)

// NotifyReady tells systemd that the server accepts connections, so that whatever waits
// for the service's start can use it. The socket is the value of NOTIFY_SOCKET. It does
// nothing if that is empty, as without systemd.
func NotifyReady(socket string) error {
	if socket == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("READY=1")); err != nil {
		return fmt.Errorf("write to %s: %w", socket, err)
	}
	return nil
}
