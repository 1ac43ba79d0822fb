package main

import (
	"cmp"
	"fmt"
	"net"

	"animalstore/internal/server"

	"github.com/coreos/go-systemd/v22/activation"
)

// inheritSockets makes a server use the sockets that its supervisor passes with
// LISTEN_FDS, as systemd's socket units do. They stay open while the server restarts, so
// new connections wait in the kernel instead of being refused. A socket named "ops" is for
// metrics and profiles.
func inheritSockets(cfg *server.Config) error {
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
