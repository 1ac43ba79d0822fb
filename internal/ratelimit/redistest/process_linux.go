package redistest

import "syscall"

// attributes protect the process from signals meant for the test, and end it with
// the test.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
