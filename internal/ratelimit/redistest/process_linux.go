package redistest

import "syscall"

// attributes are those of a process that no signal for the test reaches, and that
// does not outlive it.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
