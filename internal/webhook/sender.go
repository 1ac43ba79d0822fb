package webhook

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
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

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

const (
	// What is read of a response. The rest isn't worth the wait: none of it is kept.
	maxHeader = 16 << 10
	maxBody   = 4 << 10
	bodyTime  = time.Second
	idleTime  = 30 * time.Second
)

// Sender makes attempts to deliver.
type Sender struct {
	networks  *Networks
	transport *http.Transport
	userAgent string
	now       func() time.Time // a worker sets its own clock
	timeout   time.Duration
}

// SenderConfig configures a [Sender].
type SenderConfig struct {
	Networks  *Networks
	UserAgent string
	TLS       *tls.Config   // nil: the system's certificate authorities
	Timeout   time.Duration // zero: animalstore.AttemptTimeout
}

// NewSender returns a sender.
func NewSender(c SenderConfig) *Sender {
	s := &Sender{networks: c.Networks, userAgent: c.UserAgent, now: time.Now, timeout: c.Timeout}
	if s.timeout == 0 {
		s.timeout = animalstore.AttemptTimeout
	}
	s.transport = &http.Transport{
		Proxy:                  nil, // one from the environment could lead inside
		DialContext:            s.dial,
		TLSClientConfig:        c.TLS,
		TLSHandshakeTimeout:    s.timeout,
		ResponseHeaderTimeout:  s.timeout,
		MaxResponseHeaderBytes: maxHeader,
		MaxIdleConnsPerHost:    animalstore.MaxInFlight,
		IdleConnTimeout:        idleTime,
		DisableCompression:     true,
	}
	return s
}

// Close closes idle connections.
func (s *Sender) Close() { s.transport.CloseIdleConnections() }

type schemeKey struct{}

// dial connects only to addresses that are allowed. It decides on the address that is
// about to be connected to, so it doesn't matter what a name resolved to before.
func (s *Sender) dial(ctx context.Context, network, address string) (net.Conn, error) {
	scheme, _ := ctx.Value(schemeKey{}).(string)
	dialer := net.Dialer{ControlContext: func(_ context.Context, network, address string, _ syscall.RawConn) error {
		if !strings.HasPrefix(network, "tcp") {
			return errNotAllowed
		}
		to, err := netip.ParseAddrPort(address)
		if err != nil {
			return errNotAllowed
		}
		return s.networks.allow(to.Addr(), scheme)
	}}
	return dialer.DialContext(ctx, network, address)
}

// Attempt makes one attempt to deliver, and returns what to record.
func (s *Sender) Attempt(ctx context.Context, d *animalstore.DueDelivery) animalstore.DeliveryResult {
	started := s.now()
	status, retryAfter, err := s.post(ctx, d, started)
	a := animalstore.Attempt{Time: animalstore.At(started), DurationMs: max(0, s.now().Sub(started).Milliseconds())}
	if err != nil {
		a.Error = describe(err)
	} else {
		a.Status = &status
	}
	return d.Result(a, rand.Float64(), retryAfter)
}

// post sends a delivery and returns the status of the response. It never follows a
// redirect: that is a response like any other.
func (s *Sender) post(ctx context.Context, d *animalstore.DueDelivery, at time.Time) (status int, retryAfter time.Duration, err error) {
	u, err := url.Parse(d.URL)
	if err != nil {
		return 0, 0, err
	}
	if err := animalstore.ValidateWebhookURL(d.URL); err != nil {
		return 0, 0, err
	}
	if err := s.networks.checkLiteral(u); err != nil {
		return 0, 0, err
	}
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, schemeKey{}, u.Scheme), s.timeout)
	defer cancel()
	r, err := newRequest(ctx, d, at, s.userAgent)
	if err != nil {
		return 0, 0, err
	}
	response, err := s.transport.RoundTrip(r)
	if err != nil {
		return 0, 0, err
	}
	defer response.Body.Close()
	// A connection can be reused only after the body was read. Waiting for a long one
	// isn't worth it.
	timer := time.AfterFunc(bodyTime, cancel)
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, response.Body, maxBody)
	if response.StatusCode == http.StatusTooManyRequests || response.StatusCode == http.StatusServiceUnavailable {
		retryAfter = parseRetryAfter(response.Header.Get("Retry-After"), at)
	}
	return response.StatusCode, retryAfter, nil
}

// newRequest is the signed request that delivers d.
func newRequest(ctx context.Context, d *animalstore.DueDelivery, at time.Time, userAgent string) (*http.Request, error) {
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
func sign(header http.Header, d *animalstore.DueDelivery, at time.Time, body []byte) error {
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

// parseRetryAfter reads seconds or a date. Anything else is ignored.
func parseRetryAfter(value string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(value); err == nil {
		return max(0, at.Sub(now))
	}
	return 0
}

// describe says why there was no response, without anything that a receiver or resolver sent.
func describe(err error) animalstore.Reason {
	var dns *net.DNSError
	var certificate *tls.CertificateVerificationError
	var record tls.RecordHeaderError
	var alert tls.AlertError
	var network net.Error
	switch {
	case errors.Is(err, errNotAllowed):
		return "the host leads to an address that webhooks may not lead to"
	case errors.Is(err, errPlainHTTP):
		return "http is not allowed for this address"
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &network) && network.Timeout() && !errors.As(err, &dns):
		return animalstore.Reason(fmt.Sprintf("no response within %s", animalstore.AttemptTimeout))
	case errors.As(err, &dns):
		return "the host name does not resolve"
	case errors.As(err, &certificate):
		return "the certificate is not valid for this host"
	case errors.As(err, &record), errors.As(err, &alert):
		return "the TLS handshake failed"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "the host cannot be reached"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the connection was closed without a response"
	}
	return "no valid response"
}
