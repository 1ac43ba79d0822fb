//go:build unix && !linux

package redistest

import "syscall"

// attributes protect the process from signals meant for the test.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
