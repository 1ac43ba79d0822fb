package server

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

func TestNotifyReady(t *testing.T) {
	dir, err := os.MkdirTemp("", "notify") // t.TempDir's path may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	socket := filepath.Join(dir, "s")
	listener, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	if err := NotifyReady(socket); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 100)
	n, err := listener.Read(got)
	if err != nil || string(got[:n]) != "READY=1" {
		t.Errorf("got %q and %v, want READY=1", got[:n], err)
	}
	if err := NotifyReady(""); err != nil {
		t.Errorf("without systemd: got %v", err)
	}
	if err := NotifyReady(filepath.Join(dir, "none")); err == nil {
		t.Error("a socket that doesn't exist: got no error")
	}
}
