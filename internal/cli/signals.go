package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// ContextWithSignals returns a context that ends with the first SIGINT or SIGTERM. Its
// cause is a [SignalError]. A second signal ends the process at once.
func ContextWithSignals() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		cancel(SignalError{<-signals})
		// Some programs signal both a process and its group, so a second signal that
		// comes together with the first doesn't count.
		time.AfterFunc(time.Second, func() { signal.Stop(signals) })
	}()
	return ctx
}

// SignalError is why a command stopped before it was done.
type SignalError struct{ os.Signal }

func (e SignalError) Error() string { return "received the signal " + e.String() }

// ExitCode is the one that shells use: 130 after Ctrl-C.
func (e SignalError) ExitCode() int {
	number, _ := e.Signal.(syscall.Signal)
	return 128 + int(number)
}
