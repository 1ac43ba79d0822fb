package http1

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"
)

// TestClientDisconnects has a client disconnect while its handler is waiting.
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

// TestNextRequestKeepsContext has a client send its next request while the handler
// of the one before still waits for its context: the context doesn't end, and the
// next request is answered.
func TestNextRequestKeepsContext(t *testing.T) { overBoth(t, testNextRequestKeepsContext) }

func testNextRequestKeepsContext(t *testing.T, config *tls.Config) {
	entered, next := make(chan struct{}), make(chan struct{})
	l := listen(t, config, newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		done := r.Context().Done()
		entered <- struct{}{}
		<-next
		select {
		case <-done:
			fmt.Fprint(w, "ended")
		case <-time.After(2 * time.Millisecond):
			fmt.Fprint(w, "continued")
		}
	})))
	c := dial(t, l)
	br := bufio.NewReader(c)
	fmt.Fprint(c, plainGet)
	const requests = 500 // enough to fill the read buffer many times over
	for i := range requests {
		<-entered
		if i < requests-1 {
			fmt.Fprint(c, plainGet)
		}
		next <- struct{}{}
		res, err := http.ReadResponse(br, nil)
		if err != nil {
			t.Fatalf("request %d: %v", i, err)
		}
		if b, _ := io.ReadAll(res.Body); string(b) != "continued" {
			t.Fatalf("request %d: the context %s, want continued", i, b)
		}
	}
}

// TestContextOutlivesRequest keeps contexts and first waits for them after their
// requests, when the connection belongs to net/http.
func TestContextOutlivesRequest(t *testing.T) { overBoth(t, testContextOutlivesRequest) }

func testContextOutlivesRequest(t *testing.T, config *tls.Config) {
	kept := make(chan context.Context, 3)
	l := listen(t, config, newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { kept <- r.Context() })))
	c := dial(t, l)
	get(t, c)
	get(t, c)
	<-(<-kept).Done()
	fmt.Fprint(c, "GET /%61 HTTP/1.1\r\nHost: a\r\n\r\n")
	body(t, c)
	<-(<-kept).Done()
}

// TestDerivedContexts derives many contexts from a request's and waits for them
// during and after the request.
func TestDerivedContexts(t *testing.T) { overBoth(t, testDerivedContexts) }

func testDerivedContexts(t *testing.T, config *tls.Config) {
	var children sync.WaitGroup
	l := listen(t, config, newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for range 4 {
			children.Go(func() {
				ctx, cancel := context.WithTimeout(r.Context(), time.Duration(rand.IntN(1000))*time.Microsecond)
				defer cancel()
				context.AfterFunc(ctx, func() { r.Context().Err() })
				<-ctx.Done()
			})
		}
		time.Sleep(time.Duration(rand.IntN(500)) * time.Microsecond)
		io.WriteString(w, "hello")
	})))
	var clients sync.WaitGroup
	for range 8 {
		c := dial(t, l)
		clients.Go(func() {
			for range 50 {
				if got := get(t, c); got != "hello" {
					t.Errorf("got %q, want hello", got)
				}
			}
		})
	}
	clients.Wait()
	children.Wait()
}

// TestContext checks the context of a request during and after the request.
func TestContext(t *testing.T) { overBoth(t, testContext) }

func testContext(t *testing.T, config *tls.Config) {
	kept := make(chan context.Context, 2)
	l := listen(t, config, newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		kept <- r.Context()
		child, cancel := context.WithTimeout(r.Context(), time.Hour)
		defer cancel()
		fmt.Fprint(w, child.Err(), r.Context().Err())
	})))
	c := dial(t, l)
	for range 2 {
		if got := get(t, c); got != "<nil> <nil>" {
			t.Errorf("during the request: %s, want no error", got)
		}
		ctx := <-kept
		<-ctx.Done() // returns at once: the request was answered
		if ctx.Err() != context.Canceled {
			t.Errorf("after it: %v, want %v", ctx.Err(), context.Canceled)
		}
	}
}
