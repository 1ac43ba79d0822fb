//go:build unix

package pgtest

import (
	"path/filepath"
	"sync"
	"testing"
)

// template has the data of a server that was never started. All servers of a process
// begin with a copy of it: initdb takes five times as much CPU time as copying.
var template struct {
	mu     sync.Mutex
	server *Server
}

// createData creates the data of a server. All that were created by one process have
// the same system identifier.
func (s *Server) createData(t testing.TB) {
	t.Helper()
	template.mu.Lock()
	defer template.mu.Unlock()
	if template.server == nil {
		first := prepare(t, s.binaries)
		first.run(t, filepath.Join(s.binaries, "initdb"), "-A", "trust", "-U", "animalstore", "-E", "UTF8", "--locale=C", "--no-sync", "-D", first.data())
		template.server = first
	}
	s.run(t, "cp", "-R", template.server.data(), s.data())
}

func removeTemplate() {
	template.mu.Lock()
	defer template.mu.Unlock()
	if template.server != nil {
		template.server.remove()
		template.server = nil
	}
}
