//go:build unix

package pgtest

import (
	"os/exec"
	"sync"
)

// template has the data of a server that was never started. All servers of a process
// begin with a copy of it: initdb takes five times as much of a processor as copying.
var template struct {
	mu     sync.Mutex
	server *Server
}

// createData creates the data of a server. All that were created by one process have
// the same system identifier.
func (s *Server) createData() error {
	from, err := templateData(s.binaries)
	if err != nil {
		return err
	}
	return s.run(exec.Command("cp", "-R", from, s.data()))
}

// templateData returns the directory to copy, and creates it if needed.
func templateData(binaries string) (string, error) {
	template.mu.Lock()
	defer template.mu.Unlock()
	if template.server == nil {
		s, err := prepare(binaries)
		if err != nil {
			return "", err
		}
		if err := s.command("initdb", "-A", "trust", "-U", "animalstore", "-E", "UTF8", "--locale=C", "--no-sync", "-D", s.data()); err != nil {
			s.remove()
			return "", err
		}
		template.server = s
	}
	return template.server.data(), nil
}

func removeTemplate() {
	template.mu.Lock()
	defer template.mu.Unlock()
	if template.server != nil {
		template.server.remove()
		template.server = nil
	}
}
