package pgtest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// attributes make a process receive a signal when this one ends.
func (s *Server) attributes(signal syscall.Signal) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: signal}
	if s.uid != 0 {
		a.Credential = &syscall.Credential{Uid: uint32(s.uid), Gid: uint32(s.gid)}
	}
	return a
}

// children returns the child processes of a process.
func children(pid int) (all []int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for field := range strings.FieldsSeq(string(text)) {
		if child, err := strconv.Atoi(field); err == nil {
			all = append(all, child)
		}
	}
	return all
}

// running reports whether a process is running. A zombie isn't: in containers without an
// init process, nothing reaps it.
func running(pid int) bool {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, state, found := strings.Cut(string(text), ") ")
	return found && !strings.HasPrefix(state, "Z")
}
