package main

import (
	"cmp"
	"fmt"
	"net"
	"os"
	"strconv"

	"animalstore/internal/server"

	"github.com/coreos/go-systemd/v22/activation"
)

// inheritSockets makes a server use the sockets that its supervisor passes with
// LISTEN_FDS, as systemd's socket units do. They stay open while the server restarts, so
// new connections wait in the kernel instead of being refused. A socket named "ops" is for
// metrics and profiles.
func inheritSockets(cfg *server.Config) error {
	count, pid := os.Getenv("LISTEN_FDS"), os.Getenv("LISTEN_PID")
	switch n, err := strconv.Atoi(count); {
	case count == "":
		return nil
	case pid != strconv.Itoa(os.Getpid()): // perhaps inherited from a shell, so not an error
		cfg.Log.Warn("the sockets from LISTEN_FDS are for another process and not used: if a script starts the server, it must use exec", "listen_pid", pid)
		return nil
	case err != nil || n < 0:
		return fmt.Errorf("LISTEN_FDS must be a number of sockets, not %q", count)
	}
	for _, file := range activation.Files(true) {
		listener, err := net.FileListener(file)
		file.Close() // the listener has a copy
		if err != nil {
			return fmt.Errorf("the socket %q from LISTEN_FDS cannot be used: %w", file.Name(), err)
		}
		target := &cfg.Listener
		if file.Name() == "ops" {
			target = &cfg.OpsListener
			cfg.OpsListen = cmp.Or(cfg.OpsListen, listener.Addr().String())
		}
		switch _, tcp := listener.Addr().(*net.TCPAddr); {
		case !tcp:
			return fmt.Errorf("the socket %q from LISTEN_FDS is not a TCP socket", file.Name())
		case *target != nil:
			return fmt.Errorf("LISTEN_FDS has more than one socket to serve on, %s and %s: pass one, and perhaps one named ops", (*target).Addr(), listener.Addr())
		}
		*target = listener
	}
	return nil
}
