package pgtest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// attributes are those of a process that ends by a signal when we do.
func (s *Server) attributes(signal syscall.Signal) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: signal}
	if s.uid != 0 {
		a.Credential = &syscall.Credential{Uid: uint32(s.uid), Gid: uint32(s.gid)}
	}
	return a
}

// children are the processes that a process has started.
func children(pid int) (all []int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	for field := range strings.FieldsSeq(string(text)) {
		if child, err := strconv.Atoi(field); err == nil {
			all = append(all, child)
		}
	}
	return all
}
