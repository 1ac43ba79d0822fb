package client

import (
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client calls one deployment with one API key. It is safe for use by many
// goroutines at once, and works best when they share it: only then does it know
// of all requests that count against the key. Make one with [New].
type Client struct {
	base      *url.URL                 // ends in /v1
	http      *http.Client             // follows no redirects
	authorize func(http.Header)        // a function, so that no %+v shows the key
	conceal   func(text string) string // takes the key out of a text
	gate      *gate
	settings
}

// settings are what options change.
type settings struct {
	httpClient     *http.Client
	userAgent      string
	maxAttempts    int
	backoffBase    time.Duration
	backoffMax     time.Duration
	maxWait        time.Duration
	attemptTimeout time.Duration
	pacing         bool
	onWait         func(Wait)
	random         func() float64 // in [0, 1)
}

// Without options, see there.
const (
	defaultUserAgent      = "animalstore-go/1"
	defaultMaxAttempts    = 5
	defaultBackoffBase    = 500 * time.Millisecond
	defaultBackoffMax     = 30 * time.Second
	defaultAttemptTimeout = 30 * time.Second
)

// New makes a client of the service at baseURL, such as
// "https://pets.example" or "http://127.0.0.1:8080/v1": with or without the
// version at its end. It sends nothing yet, so a wrong key shows with the first
// call.
func New(baseURL, apiKey string, options ...Option) (*Client, error) {
	c := &Client{settings: settings{
		userAgent:      defaultUserAgent,
		maxAttempts:    defaultMaxAttempts,
		backoffBase:    defaultBackoffBase,
		backoffMax:     defaultBackoffMax,
		maxWait:        forever,
		attemptTimeout: defaultAttemptTimeout,
		onWait:         func(Wait) {},
		random:         rand.Float64,
	}}
	for _, option := range options {
		option(&c.settings)
	}
	if err := c.settings.check(); err != nil {
		return nil, err
	}
	var err error
	if c.base, err = parseBase(baseURL); err != nil {
		return nil, err
	}
	if err := checkKey(apiKey); err != nil {
		return nil, err
	}
	c.authorize = func(h http.Header) { h.Set("Authorization", "Bearer "+apiKey) }
	c.conceal = func(text string) string { return strings.ReplaceAll(text, apiKey, "[API key]") }
	c.http = withoutRedirects(c.httpClient)
	c.gate = newGate(c.pacing)
	return c, nil
}

func (s *settings) check() error {
	switch {
	case s.maxAttempts < 1:
		return fmt.Errorf("animalstore client: at least 1 attempt is needed, not %d", s.maxAttempts)
	case s.backoffBase <= 0 || s.backoffMax < s.backoffBase:
		return fmt.Errorf("animalstore client: backoff must grow from more than 0 to at least as much, not from %v to %v", s.backoffBase, s.backoffMax)
	case s.attemptTimeout <= 0:
		return fmt.Errorf("animalstore client: an attempt needs some time, not %v", s.attemptTimeout)
	case s.maxWait < 0:
		return fmt.Errorf("animalstore client: the longest wait cannot be %v", s.maxWait)
	case strings.ContainsFunc(s.userAgent, func(r rune) bool { return r < ' ' || r > '~' }):
		return errors.New("animalstore client: the user agent must be plain ASCII, without line breaks")
	}
	return nil
}

// parseBase reads the address of a deployment. What it says of a wrong one does
// not repeat it, for there may be a password in it.
func parseBase(baseURL string) (*url.URL, error) {
	u, err := url.Parse(baseURL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, errors.New("animalstore client: the base URL must be like https://pets.example or http://127.0.0.1:8080/v1")
	case u.User != nil:
		return nil, errors.New("animalstore client: the base URL must not have a user or password in it: the API key is given on its own")
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, errors.New("animalstore client: the base URL must not have a query or a fragment")
	}
	path := strings.TrimRight(u.Path, "/")
	if !strings.HasSuffix(path, version) {
		path += version
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host, Path: path}, nil
}

// version is the segment of the path that every operation is under.
const version = "/v1"

// checkKey refuses what cannot be sent as a bearer token, without showing it.
func checkKey(apiKey string) error {
	if apiKey == "" {
		return errors.New("animalstore client: the API key is empty")
	}
	if strings.ContainsFunc(apiKey, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("animalstore client: the API key has a character that no key has: is there a blank or a line break at its end?")
	}
	return nil
}

// withoutRedirects is hc, or a client of our own if there is none, that returns
// redirects instead of following them: the service never sends one, and whoever
// does must not get the key.
func withoutRedirects(hc *http.Client) *http.Client {
	if hc == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConnsPerHost = 64
		// Sooner than the server lets go of them, so that no request is sent
		// into a connection that is about to close.
		transport.IdleConnTimeout = 45 * time.Second
		hc = &http.Client{Transport: transport}
	}
	copied := *hc
	copied.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &copied
}

// BaseURL is the address of the API, /v1 included.
func (c *Client) BaseURL() string { return c.base.String() }

// RateLimit is how the key stood at the last answer that told, and false before
// there was one. It costs no request.
func (c *Client) RateLimit() (RateLimit, bool) { return c.gate.lastSeen() }

// CloseIdleConnections closes the connections that are kept for further calls.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }

// String tells where the client calls, and nothing of its key.
func (c *Client) String() string { return "animalstore client of " + c.BaseURL() }

// GoString is String, for %#v.
func (c *Client) GoString() string { return c.String() }

// LogValue is String, for log/slog.
func (c *Client) LogValue() slog.Value { return slog.StringValue(c.String()) }
