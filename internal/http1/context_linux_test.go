package http1

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"
)

// TestClientDisconnects disconnects a client while its handler is waiting.
func TestClientDisconnects(t *testing.T) { overBoth(t, testClientDisconnects) }

func testClientDisconnects(t *testing.T, config *tls.Config) {
	entered, left := make(chan struct{}), make(chan error)
	l := listen(t, config, newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		<-r.Context().Done()
		left <- r.Context().Err()
	})))
	c := dial(t, l)
	fmt.Fprint(c, plainGet)
	<-entered
	c.Close()
	select {
	case err := <-left:
		if err != context.Canceled {
			t.Errorf("the context ended with %v, want %v", err, context.Canceled)
		}
	case <-time.After(30 * time.Second):
		t.Fatal("the context didn't end when the client disconnected")
	}
}

// TestContextOfSlowRequest: the context of a slow request stays alive while its client
// waits, even if the client has already sent its next request, and ends with the
// request.
func TestContextOfSlowRequest(t *testing.T) { overBoth(t, testContextOfSlowRequest) }

func testContextOfSlowRequest(t *testing.T, config *tls.Config) {
	contexts := make(chan context.Context, 2)
	l := listen(t, config, newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		contexts <- r.Context()
		select {
		case <-r.Context().Done():
		case <-time.After(3 * watchEvery):
		}
		fmt.Fprint(w, r.Context().Err())
	})))
	c := dial(t, l)
	io.WriteString(c, plainGet+plainGet)
	for range 2 {
		if got := body(t, c); got != "<nil>" {
			t.Errorf("the context ended with %s, want it alive until the handler returns", got)
		}
		<-(<-contexts).Done()
	}
}
