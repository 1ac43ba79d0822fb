package api

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func newRequestContext(parent context.Context) *requestContext {
	return &requestContext{Context: parent, deadline: time.Now().Add(handlerTimeout)}
}

// TestDetach: after detach the context ignores that its client disconnects,
// whether or not something has already waited for it, and keeps its deadline.
func TestDetach(t *testing.T) {
	for name, waitBefore := range map[string]bool{"waited for before": true, "not waited for before": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				connection, disconnect := context.WithCancel(t.Context())
				c := newRequestContext(connection)
				defer c.release()
				if waitBefore {
					c.Done()
				}
				c.detach()
				disconnect()
				synctest.Wait()
				select {
				case <-c.Done():
					t.Errorf("got %v after the client disconnected, want the request to continue", c.Err())
				default:
				}
				if err := c.Err(); err != nil {
					t.Errorf("got %v after the client disconnected, want nil", err)
				}
				time.Sleep(handlerTimeout)
				<-c.Done()
				if err := c.Err(); !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("got %v after the deadline, want %v", err, context.DeadlineExceeded)
				}
			})
		})
	}
}

// TestNotDetached: a request that isn't detached ends with its client.
func TestNotDetached(t *testing.T) {
	connection, disconnect := context.WithCancel(t.Context())
	c := newRequestContext(connection)
	defer c.release()
	done := c.Done()
	disconnect()
	<-done
	if err := c.Err(); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
