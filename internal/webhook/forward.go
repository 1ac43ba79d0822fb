package webhook

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
	"time"

	"animalstore"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// Forwarder posts events to a receiver under development, exactly as a server delivers
// them to a webhook, but only once. It connects to any address, including loopback,
// because it runs on the developer's machine and not in the operator's network.
type Forwarder struct {
	url, secret, userAgent string
	transport              *http.Transport
}

// ErrInvalidSecret says that receivers couldn't verify with a secret. As in the published
// libraries of Standard Webhooks, whsec_ may be missing.
var ErrInvalidSecret = errors.New("must be base64, with or without whsec_ before it")

// NewForwarder returns a Forwarder to a URL, which may be http, that signs with secret.
func NewForwarder(to, secret, userAgent string) (*Forwarder, error) {
	u, err := url.Parse(to)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, animalstore.Errorf(animalstore.ValidationFailed, "the URL of the receiver must be one such as http://localhost:3000/hook, not %q", to)
	}
	// Anybody can sign with an empty key.
	if _, err := standardwebhooks.NewWebhook(secret); err != nil || secret == "" || secret == "whsec_" {
		return nil, ErrInvalidSecret
	}
	return &Forwarder{to, secret, userAgent, &http.Transport{
		Proxy:                  nil, // as a server
		MaxResponseHeaderBytes: maxHeader,
		DisableCompression:     true,
		IdleConnTimeout:        idleTime,
	}}, nil
}

// Close closes idle connections.
func (f *Forwarder) Close() { f.transport.CloseIdleConnections() }

// ForwardAll posts events as they arrive, and calls done with what came back for each.
// It returns when the events end, with the first error of the events or of done, or when
// ctx ends.
func (f *Forwarder) ForwardAll(ctx context.Context, events iter.Seq2[animalstore.Event, error], done func(animalstore.Event, animalstore.Attempt) error) error {
	for e, err := range events {
		if err != nil {
			return err
		}
		attempt := f.Forward(ctx, e)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := done(e, attempt); err != nil {
			return err
		}
	}
	return nil
}

// Forward posts one event and returns what came back.
func (f *Forwarder) Forward(ctx context.Context, e animalstore.Event) animalstore.Attempt {
	started := time.Now()
	status, err := f.post(ctx, &animalstore.DueDelivery{
		EventID: e.ID, Type: e.Type, Time: e.Time, Data: e.Data, URL: f.url, Secrets: []string{f.secret},
	}, started)
	a := animalstore.Attempt{Time: animalstore.At(started), DurationMs: time.Since(started).Milliseconds()}
	if err != nil {
		a.Error = describe(err)
	} else {
		a.Status = &status
	}
	return a
}

func (f *Forwarder) post(ctx context.Context, d *animalstore.DueDelivery, at time.Time) (status int, err error) {
	ctx, cancel := context.WithTimeout(ctx, animalstore.AttemptTimeout)
	defer cancel()
	r, err := newRequest(ctx, d, at, f.userAgent)
	if err != nil {
		return 0, err
	}
	response, err := f.transport.RoundTrip(r) // follows no redirect, as a server
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	timer := time.AfterFunc(bodyTime, cancel)
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, response.Body, maxBody)
	return response.StatusCode, nil
}
