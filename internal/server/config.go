package server

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"time"

	"animalstore"
	"animalstore/internal/api"
	"animalstore/internal/certs"
	"animalstore/internal/db"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/db/transfer"
)

// Config describes a server. Only Database and either Listen or Listener are
// required.
type Config struct {
	Database string // sqlite:FILE or a postgres:// URL
	Redis    string // the redis:// URL through which servers share limits; "" keeps limits in memory
	// Environment decides which keys are accepted. "" is production.
	Environment animalstore.Environment
	Version     string       // shown on the pages and in the metrics
	Log         *slog.Logger // nil discards it

	Listen   string       // the address and port to serve on
	Listener net.Listener // instead of Listen

	// At most one of CertFile, ACME and TLS may be set. It makes the server serve
	// HTTPS, with the versions and cipher suites narrowed to the safe ones. Without
	// any it serves plain HTTP.

	CertFile string      // has the certificate chain, and is read again when it changes
	KeyFile  string      // has the private key of CertFile
	ACME     *certs.ACME // obtains and renews certificates
	TLS      *tls.Config // has fixed certificates
	// RedirectListen is the address and port that redirects plain HTTP to HTTPS, and
	// answers the HTTP challenges of ACME. "" redirects none.
	RedirectListen string

	// OpsListen is the address and port of metrics and profiles. "" serves none.
	OpsListen string
	// OpsOptional lets the server start if it can't listen on OpsListen. Its
	// OpsError then says why.
	OpsOptional bool

	// Backups that the server makes by itself. The zero value makes none.
	Backups transfer.Schedule
	// EventsRetention is how long events are kept. 0 is DefaultEventsRetention; a
	// negative value keeps them forever.
	EventsRetention time.Duration

	TrustedProxies []netip.Prefix // whose X-Forwarded-For is believed
	CORSOrigins    []string       // whose pages may call the API
	// WebhookNetworks are extra networks that webhooks may reach, also over http.
	// Without them, webhooks reach only public addresses.
	WebhookNetworks []netip.Prefix
	AccessLog       bool // logs a line for every request
	// NoFastPath leaves every request to net/http. By default package http1 serves
	// the plain ones.
	NoFastPath bool
	// NoConsole serves nothing at /console.
	NoConsole bool

	// Fatal is called once when storage fails so badly that it can't be trusted any more,
	// and must end the process. Nil panics.
	Fatal func(error)
	// Timeouts limit how long connections may take. The zero value is
	// [DefaultTimeouts].
	Timeouts Timeouts

	// The rest is for tests and benchmarks. No flag and no variable may set it.

	Now      func() time.Time  // nil is [time.Now]
	Observer api.Observer      // instead of the metrics
	WrapDB   func(db.DB) db.DB // what the service uses instead of its database
	// Middleware wraps the API. It may do anything a handler of net/http may, so
	// net/http then serves every request.
	Middleware func(http.Handler) http.Handler
	// NoBackground leaves out the background work: saving counters and usage, deleting
	// old rows and delivering to webhooks.
	NoBackground bool
	// EventsEvery is how often a server looks for events of other processes. 0 is 250 ms.
	EventsEvery time.Duration
	Tuning      sqlite.Tuning
	// WebhookTLS replaces the certificate authorities of the system for webhooks,
	// and CheckWebhookURL the check of where a URL leads when it is saved.
	WebhookTLS      *tls.Config
	CheckWebhookURL func(ctx context.Context, url string) error
	NoPageCache     bool
	// CertificateCheck is how often CertFile and KeyFile are read. 0 is a second.
	CertificateCheck time.Duration
}

// Timeouts limit how long a connection may take. A zero field sets no limit.
type Timeouts struct {
	ReadHeader, Read, Write, Idle time.Duration
	// DrainNotice is how long new requests are still served once the server is
	// told to stop. The responses ask clients to connect elsewhere, so a client
	// with a busy connection isn't cut off without notice.
	DrainNotice time.Duration
	// DrainHandshake is how long clients that began to connect before that get to
	// complete the connection. Its request is still served.
	DrainHandshake time.Duration
	// Drain is how long requests in progress may still take after that.
	Drain time.Duration
}

// DefaultTimeouts keep a client from holding a connection forever.
var DefaultTimeouts = Timeouts{
	ReadHeader:     5 * time.Second,
	Read:           10 * time.Second,
	Write:          15 * time.Second,
	Idle:           60 * time.Second,
	DrainNotice:    500 * time.Millisecond,
	DrainHandshake: 250 * time.Millisecond,
	Drain:          10 * time.Second,
}

// DefaultEventsRetention is how long a server keeps events by default.
const DefaultEventsRetention = 30 * 24 * time.Hour

// maxHeaderBytes is 16 KiB in all: net/http allows 4 KiB on top of its setting.
const maxHeaderBytes = 12 << 10

func (c Config) withDefaults() Config {
	if c.Environment == "" {
		c.Environment = animalstore.Production
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Timeouts == (Timeouts{}) {
		c.Timeouts = DefaultTimeouts
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.EventsRetention == 0 {
		c.EventsRetention = DefaultEventsRetention
	}
	return c
}
