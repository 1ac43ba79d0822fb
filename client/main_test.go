package client_test

import (
	"io"
	"log"
	"os"
	"testing"

	"animalstore/client/clienttest"
)

// The examples run against the real service, at this address with this key.
var address, apiKey string

func TestMain(m *testing.M) {
	forExamples := &noTest{}
	store := clienttest.New(forExamples)
	address, apiKey = store.URL, store.Key
	code := m.Run()
	store.Client.CloseIdleConnections()
	forExamples.end()
	os.Exit(code)
}

// noTest replaces the *testing.T that clienttest needs, which examples don't have.
type noTest struct {
	testing.TB
	cleanups []func()
}

func (n *noTest) Helper()                           {}
func (n *noTest) Output() io.Writer                 { return os.Stderr }
func (n *noTest) Errorf(format string, args ...any) { log.Printf(format, args...) }
func (n *noTest) Fatalf(format string, args ...any) { log.Fatalf(format, args...) }
func (n *noTest) Cleanup(f func())                  { n.cleanups = append(n.cleanups, f) }

func (n *noTest) TempDir() string {
	dir, err := os.MkdirTemp("", "clienttest")
	if err != nil {
		log.Fatal(err)
	}
	n.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func (n *noTest) end() {
	for i := len(n.cleanups) - 1; i >= 0; i-- {
		n.cleanups[i]()
	}
}
