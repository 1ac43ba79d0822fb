// Package dbadmin backs up, restores, moves, checks and fills databases for the operator.
// It calls package transfer, shows the progress on a terminal, and says in words what
// was done or, in errors, what wasn't and what to do next. Those name the flags of the
// commands that call it.
package dbadmin
