package webhook

import (
	"context"
	"errors"
	"iter"
	"net/netip"

	"animalstore"
	"animalstore/internal/db"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// Forwarder posts events to a receiver under development, exactly as a server delivers
// them to a webhook, but only once. It connects to any address, including loopback,
// because it runs on the developer's machine and not in the operator's network.
type Forwarder struct {
	url, secret string
	sender      *Sender
}

// ErrInvalidSecret says that receivers couldn't verify with a secret. As in the published
// libraries of Standard Webhooks, whsec_ may be missing.
var ErrInvalidSecret = errors.New("must be base64, with or without whsec_ before it")

// NewForwarder returns a Forwarder to a URL, which may be http, that signs with secret.
func NewForwarder(to, secret, userAgent string) (*Forwarder, error) {
	if animalstore.ValidateWebhookURL(to) != nil {
		return nil, animalstore.Errorf(animalstore.ValidationFailed, "the URL of the receiver must be one such as http://localhost:3000/hook, not %q", to)
	}
	// Anybody can sign with an empty key.
	if _, err := standardwebhooks.NewWebhook(secret); err != nil || secret == "" || secret == "whsec_" {
		return nil, ErrInvalidSecret
	}
	anyNetwork := []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}
	return &Forwarder{to, secret, NewSender(SenderConfig{Networks: NewNetworks(anyNetwork), UserAgent: userAgent})}, nil
}

// Close closes idle connections.
func (f *Forwarder) Close() { f.sender.Close() }

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
	return f.sender.Attempt(ctx, &db.ClaimedDelivery{
		EventID: e.ID, Type: e.Type, Time: e.Time, Data: e.Data, URL: f.url, Secrets: []string{f.secret},
	}).Attempt
}
