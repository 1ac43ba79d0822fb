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
	"animalstore/internal/db/transfer"
)

// Config describes a server. Only Database and either Listen or Listener are
// required.
type Config struct {
	api.Settings // by default production, without a log, and with DefaultPhotosLimit

	Database string // sqlite:FILE or a postgres:// URL
	Redis    string // redis:// URL of the limits that servers share; "" keeps limits in memory

	Listen   string       // the address and port to serve on
	Listener net.Listener // instead of Listen

	// Either CertFile or domains of ACME make the server serve HTTPS, with only the safe
	// versions and cipher suites. Without both it serves plain HTTP.

	CertFile string     // has the certificate chain, and is read again when it changes
	KeyFile  string     // has the private key of CertFile
	ACME     certs.ACME // obtains and renews certificates
	// RedirectListen is the address and port that redirects plain HTTP to HTTPS and
	// serves ACME's HTTP challenges. "" disables it.
	RedirectListen string

	// OpsListen is the address and port of metrics and profiles. "" disables them.
	OpsListen   string
	OpsListener net.Listener // has the port already, if OpsListen isn't ""
	// OpsOptional lets the server start even if it can't listen on OpsListen.
	OpsOptional bool

	// Backups schedules the backups that the server makes. The zero value makes none.
	Backups transfer.Schedule
	// EventsRetention is how long events are kept. 0 keeps them forever.
	EventsRetention time.Duration
	// WebhookNetworks are extra networks that webhooks may reach, also over http.
	// Without them, webhooks reach only public addresses.
	WebhookNetworks []netip.Prefix
	// NoFastPath leaves every request to net/http. By default package http1 serves
	// most of those that arrive without TLS.
	NoFastPath bool
	NoConsole  bool // serves nothing at /console
	NoMCP      bool // serves nothing at /mcp

	// Fatal is called once when storage fails so badly that it can no longer be
	// trusted. It must end the process. If nil, the server panics.
	Fatal func(error)
	// ShutdownDelay is how long a server that is told to stop serves everything except
	// /readyz as before, so that load balancers notice in time.
	ShutdownDelay time.Duration
	// SkipDelay returns a context that also ends when the rest of the delay should be
	// skipped. Nil if nobody can ask for that.
	SkipDelay func(context.Context) (context.Context, context.CancelFunc)
	// Timeouts limit how long connections may take. The zero value means [DefaultTimeouts].
	Timeouts Timeouts

	Hooks Hooks // for tests only
}

// Hooks replace parts of a server in tests. No flag or environment variable may set them.
type Hooks struct {
	Now      func() time.Time  // nil is [time.Now]
	Observer api.Observer      // instead of the metrics
	WrapDB   func(db.DB) db.DB // wraps the database that the service uses
	// Middleware wraps the API. It may do anything a net/http handler may, so net/http
	// then serves every request.
	Middleware func(http.Handler) http.Handler
	// NoBackground disables background work: saving counters and usage, deleting old
	// rows and delivering to webhooks.
	NoBackground bool
	// EventsEvery is how often a server polls for events of other processes. 0 means
	// 250 ms.
	EventsEvery time.Duration
	// RequestTimeout is [api.Config.RequestTimeout] and [console.Config.RequestTimeout].
	RequestTimeout time.Duration
	// NoSync is [sqlite.Options.NoSync].
	NoSync bool
	// PostgresTimeout is [postgres.Options.Timeout].
	PostgresTimeout time.Duration
	// WebhookTLS replaces the system's certificate authorities for webhooks.
	// WebhookTimeout replaces [db.AttemptTimeout].
	// CheckWebhookURL replaces the check of a URL's destination when it is saved.
	WebhookTLS      *tls.Config
	WebhookTimeout  time.Duration
	CheckWebhookURL func(ctx context.Context, url string) error
}

// Timeouts limit how long a connection may take. A zero field sets no limit.
type Timeouts struct {
	ReadHeader, Read, Write, Idle time.Duration
	// DrainNotice is how long new requests are still served after the server is told to
	// stop. The responses ask clients to reconnect elsewhere, so that no busy
	// connection is cut off without notice.
	DrainNotice time.Duration
	// Drain is how long requests in progress may still take after that.
	Drain time.Duration
}

// DefaultTimeouts prevent clients from holding a connection forever. Read is shorter than
// Drain, so that nobody can make a shutdown fail by never sending the rest of a request.
var DefaultTimeouts = Timeouts{
	ReadHeader:  5 * time.Second,
	Read:        9 * time.Second,
	Write:       15 * time.Second,
	Idle:        60 * time.Second,
	DrainNotice: 500 * time.Millisecond,
	Drain:       10 * time.Second,
}

// DefaultPhotosLimit is how many bytes all photos together may take by default.
const DefaultPhotosLimit = 10 << 30

// maxHeaderBytes amounts to 16 KiB: net/http allows 4 KiB more than its setting.
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
	if c.Hooks.Now == nil {
		c.Hooks.Now = time.Now
	}
	if c.PhotosLimit == 0 {
		c.PhotosLimit = DefaultPhotosLimit
	}
	return c
}
