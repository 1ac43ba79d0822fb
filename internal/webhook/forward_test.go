package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"animalstore"
	verify "animalstore/client/webhook"
)

// TestForwarderSecrets: a secret works with or without its prefix, as in the published
// libraries of Standard Webhooks, and the receiver can verify with either.
func TestForwarderSecrets(t *testing.T) {
	const bare = "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	verified := make(chan error, 1)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		verified <- errors.Join(err, verify.Verify("whsec_"+bare, r.Header, body), verify.Verify(bare, r.Header, body))
	}))
	defer receiver.Close()
	for secret, want := range map[string]error{
		"whsec_" + bare: nil, bare: nil,
		"": ErrInvalidSecret, "whsec_": ErrInvalidSecret, "whsec_open!": ErrInvalidSecret, "open!": ErrInvalidSecret,
	} {
		f, err := NewForwarder(receiver.URL, secret, "test")
		if !errors.Is(err, want) {
			t.Errorf("%q: got %v, want %v", secret, err, want)
		}
		if err != nil {
			continue
		}
		a := f.Forward(t.Context(), animalstore.Event{ID: 1, Type: animalstore.PetCreated, Data: json.RawMessage(`{}`)})
		if a.Status == nil || *a.Status != http.StatusOK {
			t.Fatalf("%q: got %+v, want status 200", secret, a)
		}
		if err := <-verified; err != nil {
			t.Errorf("%q: got %v, want a webhook that verifies", secret, err)
		}
		f.Close()
	}
}

// TestForwardAll: every event is forwarded in order, until one of them or the caller
// fails, or the context ends.
func TestForwardAll(t *testing.T) {
	receiver := httptest.NewServer(http.NotFoundHandler())
	defer receiver.Close()
	f, err := NewForwarder(receiver.URL, "whsec_dGVzdA==", "test")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	broken := errors.New("broken")
	events := func(n int64, last error) iter.Seq2[animalstore.Event, error] {
		return func(yield func(animalstore.Event, error) bool) {
			for id := range n {
				if !yield(animalstore.Event{ID: id + 1, Type: animalstore.PetCreated, Data: json.RawMessage(`{}`)}, nil) {
					return
				}
			}
			if last != nil {
				yield(animalstore.Event{}, last)
			}
		}
	}
	for _, test := range []struct {
		name   string
		last   error
		stopAt int64 // the caller fails
		cancel int64 // the context ends
		want   error
		ids    []int64
	}{
		{name: "all", ids: []int64{1, 2, 3}},
		{name: "the events fail", last: broken, want: broken, ids: []int64{1, 2, 3}},
		{name: "the caller fails", stopAt: 2, want: broken, ids: []int64{1, 2}},
		{name: "the context ends", cancel: 2, want: context.Canceled, ids: []int64{1, 2}},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var ids []int64
			err := f.ForwardAll(ctx, events(3, test.last), func(e animalstore.Event, a animalstore.Attempt) error {
				ids = append(ids, e.ID)
				if a.Status == nil || *a.Status != http.StatusNotFound {
					t.Errorf("event %d: got %+v, want status 404", e.ID, a)
				}
				if e.ID == test.cancel {
					cancel()
				}
				if e.ID == test.stopAt {
					return broken
				}
				return nil
			})
			if !errors.Is(err, test.want) || !slices.Equal(ids, test.ids) {
				t.Errorf("got %v after %v, want %v after %v", err, ids, test.want, test.ids)
			}
		})
	}
}
