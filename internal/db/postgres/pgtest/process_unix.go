//go:build unix && !linux

package pgtest

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// attributes put a process into its own group, so that it doesn't get our signals.
func (s *Server) attributes(syscall.Signal) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true}
	if s.uid != 0 {
		a.Credential = &syscall.Credential{Uid: uint32(s.uid), Gid: uint32(s.gid)}
	}
	return a
}

// children returns the child processes of a process.
func children(pid int) (all []int) {
	text, _ := exec.Command("pgrep", "-P", strconv.Itoa(pid)).Output()
	for field := range strings.FieldsSeq(string(text)) {
		if child, err := strconv.Atoi(field); err == nil {
			all = append(all, child)
		}
	}
	return all
}

// running reports whether a process is in the list of processes.
func running(pid int) bool { return syscall.Kill(pid, 0) == nil }
