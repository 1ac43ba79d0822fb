package cli

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// sameSignal is how long after a signal another doesn't count: some programs signal both a
// process and its group.
const sameSignal = time.Second

// ContextWithSignals returns a context that ends with the first SIGINT or SIGTERM. Its
// cause is a [SignalError]. A second signal ends the process at once.
func ContextWithSignals() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		cancel(SignalError{<-signals})
		time.AfterFunc(sameSignal, func() { signal.Stop(signals) })
	}()
	return ctx
}

// UntilNextSignal returns a copy of parent that also ends with the next SIGINT or SIGTERM,
// which then doesn't end the process. Call it after the context of [ContextWithSignals] has
// ended, and the returned function when signals should end the process again.
func UntilNextSignal(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	began := time.Now()
	go func() {
		for {
			select {
			case <-signals:
				if time.Since(began) >= sameSignal {
					cancel()
				}
			case <-ctx.Done():
				time.AfterFunc(sameSignal, func() { signal.Stop(signals) })
				return
			}
		}
	}()
	return ctx, cancel
}

// SignalError is why a command stopped before it was done.
type SignalError struct{ os.Signal }

func (e SignalError) Error() string { return "received the signal " + e.String() }

// ExitCode is the one that shells use: 130 after Ctrl-C.
func (e SignalError) ExitCode() int {
	number, _ := e.Signal.(syscall.Signal)
	return 128 + int(number)
}
