package db

import "context"

// Standby answers a request whose write takes too long. A disk can hang, and nothing can
// interrupt a goroutine that waits for it. With a standby, a request can write in its own
// goroutine nevertheless: passing a write to another one takes longer than SQLite needs
// for it.
type Standby interface {
	// Begin is called before a write. If it takes until the deadline of the request,
	// giveUp is called in another goroutine, and the error that it returns is the
	// response. If it returns nil, the write has just ended, and there is no response yet.
	Begin(giveUp func() error)
	// End is called after the write. Then the request is its own goroutine's again. It
	// may have been answered: what it writes from then on is lost.
	End()
}

// StandbyKey is the key of the context value that holds the [Standby].
type StandbyKey struct{}

// StandbyOf returns the standby of a context, or nil.
func StandbyOf(ctx context.Context) Standby {
	standby, _ := ctx.Value(StandbyKey{}).(Standby)
	return standby
}
