package e2e

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"animalstore/internal/db/postgres/pgtest"
)

// A document that prints this finds a PostgreSQL server there, with nothing in it.
const documentedPostgres = "postgres://animalstore@127.0.0.1/"

// usualPostgres is where that is.
const usualPostgres = "127.0.0.1:5432"

// bridge is set where this program is run to forward from one network to another: a
// session has its own network namespace, but shares the file system.
const bridge = "ANIMALSTORE_E2E_BRIDGE"

func init() {
	socket := os.Getenv(bridge)
	if socket == "" {
		return
	}
	l, err := net.Listen("tcp", usualPostgres)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	forward(l, "unix", socket)
}

// providePostgres starts a server and returns what a session has to run first so
// that it is at the usual address.
func providePostgres(t *testing.T) (script string) {
	t.Helper()
	server := pgtest.Start(t)
	server.MustExec(t, "postgres", "CREATE DATABASE animalstore")
	dir, err := os.MkdirTemp("", "animalstore-") // t.TempDir may be too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	socket := filepath.Join(dir, "postgres")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go forward(l, "tcp", server.Address())
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := strings.Cut(usualPostgres, ":")
	return fmt.Sprintf("%s=%q %q &\nuntil (: >/dev/tcp/%s/%s) 2>/dev/null; do kill -0 $!; sleep 0.05; done\n", bridge, socket, program, host, port)
}

// forward hands connections on until the listener is closed.
func forward(l net.Listener, network, address string) {
	for {
		from, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer from.Close()
			to, err := net.Dial(network, address)
			if err != nil {
				return
			}
			defer to.Close()
			go func() {
				io.Copy(to, from)
				to.Close()
			}()
			io.Copy(from, to)
		}()
	}
}
