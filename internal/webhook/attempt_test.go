package webhook

import (
	"context"
	"io"
	"net"
	"net/http"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/testenv"
)

// holdOpen starts a receiver that writes some text to each connection, and then reads
// until it is closed. begun gets a value for each connection that was used, ended for each
// that was closed.
func holdOpen(t *testing.T, text string) (address string, begun, ended chan struct{}) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	begun, ended = make(chan struct{}, 10), make(chan struct{}, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				// A response before the request would be an error of another kind.
				_, _ = c.Read(make([]byte, 1))
				begun <- struct{}{}
				_, _ = io.WriteString(c, text)
				_, _ = io.Copy(io.Discard, c)
				ended <- struct{}{}
			}()
		}
	}()
	return l.Addr().String(), begun, ended
}

func wantEnded(t *testing.T, what string, ended <-chan struct{}) {
	t.Helper()
	select {
	case <-ended:
	case <-time.After(testenv.Deadline):
		t.Errorf("%s: the connection is still open after %v", what, testenv.Deadline)
	}
}

// TestSwitchingProtocols: a receiver can't keep an attempt or its connection with a
// response that makes the connection its body.
func TestSwitchingProtocols(t *testing.T) {
	t.Parallel()
	address, _, ended := holdOpen(t, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
	sender := NewSender(SenderConfig{Networks: NewNetworks(loopback), Timeout: time.Hour})
	defer sender.Close()
	forwarder, err := NewForwarder("http://"+address, "whsec_dGVzdA==", "test")
	if err != nil {
		t.Fatal(err)
	}
	defer forwarder.Close()
	for name, attempt := range map[string]func() animalstore.Attempt{
		"Sender": func() animalstore.Attempt {
			return sender.Attempt(t.Context(), due("http://"+address)).Attempt
		},
		"Forwarder": func() animalstore.Attempt {
			return forwarder.Forward(t.Context(), animalstore.Event{ID: 1, Type: animalstore.PetCreated, Data: []byte(`{}`)})
		},
	} {
		done := make(chan animalstore.Attempt, 1)
		go func() { done <- attempt() }()
		wantEnded(t, name, ended)
		select {
		case a := <-done:
			if a.Succeeded() || a.Status == nil || *a.Status != http.StatusSwitchingProtocols {
				t.Errorf("%s: got %+v, want a failure with status 101", name, a)
			}
		case <-time.After(testenv.Deadline):
			t.Errorf("%s: the attempt still runs after %v", name, testenv.Deadline)
		}
	}
}

// TestConnectingEndsWithTheAttempt: net/http goes on connecting after a request was
// canceled, but an attempt leaves nothing behind.
func TestConnectingEndsWithTheAttempt(t *testing.T) {
	t.Parallel()
	address, begun, ended := holdOpen(t, "")
	sender := NewSender(SenderConfig{Networks: NewNetworks(loopback), Timeout: time.Hour})
	defer sender.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-begun // the handshake has
		cancel()
	}()
	if r := sender.Attempt(ctx, due("https://"+address)); r.Status != nil {
		t.Errorf("got %+v, want no response", r.Attempt)
	}
	wantEnded(t, "a handshake without end", ended)
}
