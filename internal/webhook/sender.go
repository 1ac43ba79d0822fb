package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"syscall"
	"time"

	"animalstore"
	"animalstore/internal/db"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	// Limits on reading a response. The content is discarded, so the
	// rest isn't worth waiting for.
	maxHeader = 16 << 10
	maxBody   = 4 << 10
	bodyTime  = time.Second
	idleTime  = 30 * time.Second
)

// Sender makes attempts to deliver.
type Sender struct {
	SenderConfig
	transport *http.Transport
	now       func() time.Time // a worker sets its own clock
}

// SenderConfig configures a [Sender].
type SenderConfig struct {
	Networks  *Networks
	UserAgent string
	TLS       *tls.Config   // nil: the system's certificate authorities
	Timeout   time.Duration // zero: db.AttemptTimeout
}

// NewSender returns a sender.
func NewSender(c SenderConfig) *Sender {
	s := &Sender{SenderConfig: c, now: time.Now}
	if s.Timeout == 0 {
		s.Timeout = db.AttemptTimeout
	}
	if s.TLS = c.TLS.Clone(); s.TLS == nil {
		s.TLS = &tls.Config{}
	}
	s.TLS.NextProtos = []string{"http/1.1"} // a receiver with only HTTP/2 then refuses the handshake
	s.transport = &http.Transport{
		Proxy:                  nil, // one from the environment could reach internal networks
		DialContext:            s.dial,
		DialTLSContext:         s.dialTLS,
		MaxResponseHeaderBytes: maxHeader,
		MaxIdleConnsPerHost:    db.MaxInFlight,
		IdleConnTimeout:        idleTime,
		DisableCompression:     true,
	}
	return s
}

// Close closes idle connections.
func (s *Sender) Close() { s.transport.CloseIdleConnections() }

// attemptKey is the key under which a request's context contains itself. net/http gives
// dialers a context with the same values that isn't cancelled with the request.
type attemptKey struct{}

func withAttempt(ctx context.Context) context.Context {
	return context.WithValue(ctx, attemptKey{}, ctx)
}

func attemptOf(ctx context.Context) context.Context {
	if attempt, ok := ctx.Value(attemptKey{}).(context.Context); ok {
		return attempt
	}
	return ctx
}

// dial connects for http.
func (s *Sender) dial(ctx context.Context, network, address string) (net.Conn, error) {
	return s.connect(attemptOf(ctx), network, address, "http")
}

// dialTLS connects for https.
func (s *Sender) dialTLS(ctx context.Context, network, address string) (net.Conn, error) {
	ctx = attemptOf(ctx)
	conn, err := s.connect(ctx, network, address, "https")
	if err != nil {
		return nil, err
	}
	config := s.TLS.Clone()
	if config.ServerName, _, err = net.SplitHostPort(address); err != nil {
		conn.Close()
		return nil, err
	}
	c := tls.Client(conn, config)
	if err := c.HandshakeContext(ctx); err != nil {
		conn.Close()
		return nil, &handshakeError{err}
	}
	return c, nil
}

// connect connects only to addresses that are allowed. It decides on the address that is
// about to be connected to, so it doesn't matter what a name resolved to before.
func (s *Sender) connect(ctx context.Context, network, address, scheme string) (net.Conn, error) {
	dialer := net.Dialer{ControlContext: func(_ context.Context, network, address string, _ syscall.RawConn) error {
		if !strings.HasPrefix(network, "tcp") {
			return errNotAllowed
		}
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return errNotAllowed
		}
		return s.Networks.allow(to.Addr(), scheme)
	}}
	return dialer.DialContext(ctx, network, address)
}

// Attempt makes one attempt to deliver, and returns what to record.
func (s *Sender) Attempt(ctx context.Context, d *db.ClaimedDelivery) db.DeliveryResult {
	started := s.now()
	status, retryAfter, err := s.post(ctx, d, started)
	a := animalstore.Attempt{Time: animalstore.At(started), DurationMs: max(0, s.now().Sub(started).Milliseconds())}
	if err != nil {
		a.Error = describe(err, s.Timeout)
	} else {
		a.Status = &status
	}
	return d.Result(a, rand.Float64(), retryAfter)
}

// post sends a delivery and returns the status of the response. A redirect is a response
// like any other.
func (s *Sender) post(ctx context.Context, d *db.ClaimedDelivery, at time.Time) (status int, retryAfter time.Duration, err error) {
	u, err := url.Parse(d.URL)
	if err != nil {
		return 0, 0, err
	}
	if err := s.Networks.checkLiteral(u); err != nil {
		return 0, 0, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.Timeout)
	defer cancel()
	r, err := newRequest(withAttempt(ctx), d, at, s.UserAgent)
	if err != nil {
		return 0, 0, err
	}
	response, err := roundTrip(s.transport, r)
	if err != nil {
		return 0, 0, err
	}
	if response.StatusCode == http.StatusTooManyRequests || response.StatusCode == http.StatusServiceUnavailable {
		retryAfter = parseRetryAfter(response.Header.Get("Retry-After"), at)
	}
	return response.StatusCode, retryAfter, nil
}

// roundTrip returns the response without its body. It follows no redirect.
func roundTrip(transport *http.Transport, r *http.Request) (*http.Response, error) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	response, err := transport.RoundTrip(r.WithContext(ctx))
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode == http.StatusSwitchingProtocols {
		return response, nil // its body is the connection, and no context ends reading it
	}
	// A connection can be reused only after the body was read. Waiting for a long one
	// isn't worth it.
	defer time.AfterFunc(bodyTime, cancel).Stop()
	_, _ = io.CopyN(io.Discard, response.Body, maxBody)
	return response, nil
}

// newRequest is the signed request that delivers d.
func newRequest(ctx context.Context, d *db.ClaimedDelivery, at time.Time, userAgent string) (*http.Request, error) {
	body := d.Body()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, d.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	if err := sign(r.Header, d, at, body); err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("User-Agent", userAgent)
	return r, nil
}

// sign sets the headers of Standard Webhooks, with a signature by each secret.
func sign(header http.Header, d *db.ClaimedDelivery, at time.Time, body []byte) error {
	var signatures []string
	for _, secret := range d.Secrets {
		w, err := standardwebhooks.NewWebhook(secret)
		if err != nil {
			return errors.New("a secret of the webhook is invalid") // err has a part of it
		}
		signature, err := w.Sign(d.MessageID(), at, body)
		if err != nil {
			return err
		}
		signatures = append(signatures, signature)
	}
	header.Set(standardwebhooks.HeaderWebhookID, d.MessageID())
	header.Set(standardwebhooks.HeaderWebhookTimestamp, strconv.FormatInt(at.Unix(), 10))
	header.Set(standardwebhooks.HeaderWebhookSignature, strings.Join(signatures, " "))
	return nil
}

// parseRetryAfter reads seconds or a date. Anything else is ignored. A number that is too
// large counts as the largest: NextAttempt waits no longer than a day anyway.
func parseRetryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil || errors.Is(err, strconv.ErrRange) {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}
