//go:build unix && !linux

package redistest

import "syscall"

// attributes are those of a process that no signal for the test reaches.
func attributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
