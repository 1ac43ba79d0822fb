package main

import (
	"fmt"
	"net"
	"os"
)

// notifyReady tells systemd that the server accepts connections, so that whatever
// waits for the service's start can use it. Without systemd it does nothing.
func notifyReady() error {
	address := os.Getenv("NOTIFY_SOCKET")
	if address == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: address, Net: "unixgram"})
	if err != nil {
		return err
	}
	defer conn.Close()
	if _, err := conn.Write([]byte("READY=1")); err != nil {
		return fmt.Errorf("write to %s: %w", address, err)
	}
	return nil
}
