package client

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client calls one deployment with one API key. It's safe for concurrent use, and works
// best if all goroutines share it: only then does it know about all requests that count
// against the key. Create one with [New].
type Client struct {
	base      *url.URL                 // ends in /v1
	http      *http.Client             // follows no redirects
	authorize func(http.Header)        // a function, so that %+v doesn't print the key
	conceal   func(text string) string // removes the key from a text
	gate      *gate
	settings
}

// settings are the values that options change.
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
	onAttempt      func(CallAttempt)
}

// The defaults of the options.
const (
	defaultUserAgent      = "animalstore-go/1"
	defaultMaxAttempts    = 5
	defaultBackoffBase    = 500 * time.Millisecond
	defaultBackoffMax     = 30 * time.Second
	defaultAttemptTimeout = 30 * time.Second
)

// New creates a client of the service at baseURL, such as "https://pets.example" or
// "http://127.0.0.1:8080/v1": the version at the end is optional. It sends nothing yet,
// so a wrong key is noticed only in the first call.
func New(baseURL, apiKey string, options ...Option) (*Client, error) {
	c := &Client{settings: settings{
		userAgent:      defaultUserAgent,
		maxAttempts:    defaultMaxAttempts,
		backoffBase:    defaultBackoffBase,
		backoffMax:     defaultBackoffMax,
		maxWait:        forever,
		attemptTimeout: defaultAttemptTimeout,
		onWait:         func(Wait) {},
		onAttempt:      func(CallAttempt) {},
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
	if hc := c.httpClient; hc != nil && hc.Timeout > 0 {
		c.attemptTimeout = min(c.attemptTimeout, hc.Timeout)
	}
	c.http = withoutRedirects(c.httpClient)
	c.gate = newGate(c.pacing)
	return c, nil
}

// BaseURLError is returned by [New] if the base URL can't be used.
type BaseURLError struct {
	Reason string // the end of a sentence that begins with the URL
}

func (e *BaseURLError) Error() string { return "animalstore client: the base URL " + e.Reason }

func (s *settings) check() error {
	switch {
	case s.maxAttempts < 1:
		return fmt.Errorf("animalstore client: the maximum number of attempts must be at least 1, not %d", s.maxAttempts)
	case s.backoffBase <= 0 || s.backoffMax < s.backoffBase:
		return fmt.Errorf("animalstore client: the backoff must be positive and its maximum not below its base, not from %v to %v", s.backoffBase, s.backoffMax)
	case s.attemptTimeout <= 0:
		return fmt.Errorf("animalstore client: the timeout of an attempt must be positive, not %v", s.attemptTimeout)
	case s.maxWait < 0:
		return fmt.Errorf("animalstore client: the maximum wait must not be negative, not %v", s.maxWait)
	case strings.ContainsFunc(s.userAgent, func(r rune) bool { return r < ' ' || r > '~' }):
		return errors.New("animalstore client: the user agent must be plain ASCII, without line breaks")
	}
	return nil
}

// parseBase parses the URL of a deployment. Its errors don't quote the URL, which may
// contain a password.
func parseBase(baseURL string) (*url.URL, error) {
	u, err := url.Parse(baseURL)
	switch {
	case err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return nil, &BaseURLError{"must be like https://pets.example or http://127.0.0.1:8080/v1"}
	case u.User != nil:
		return nil, &BaseURLError{"must not have a user or password in it: pass the API key separately"}
	case u.RawQuery != "" || u.ForceQuery || u.Fragment != "":
		return nil, &BaseURLError{"must not have a query or a fragment"}
	}
	path := strings.TrimRight(u.Path, "/")
	if !strings.HasSuffix(path, version) {
		path += version
	}
	return &url.URL{Scheme: u.Scheme, Host: u.Host, Path: path}, nil
}

// version is the path prefix of all operations.
const version = "/v1"

// checkKey checks that a key can be sent as a bearer token. Its errors don't quote
// the key.
func checkKey(apiKey string) error {
	if apiKey == "" {
		return errors.New("animalstore client: the API key is empty")
	}
	if strings.ContainsFunc(apiKey, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("animalstore client: the API key contains an invalid character: is there a space or line break at the end?")
	}
	return nil
}

// withoutRedirects returns a copy of hc, or a new client if hc is nil. It returns
// redirects instead of following them: the service never sends one, and the target must
// not get the key.
func withoutRedirects(hc *http.Client) *http.Client {
	if hc == nil {
		transport := http.DefaultTransport.(*http.Transport).Clone()
		transport.MaxIdleConnsPerHost = 64
		// Shorter than the server's timeout, so that no request is sent on a connection
		// that the server is about to close.
		transport.IdleConnTimeout = 45 * time.Second
		hc = &http.Client{Transport: transport}
	}
	copied := *hc
	copied.Timeout = 0 // it would end streams; attempts have one
	copied.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &copied
}

// urlOf is the full URL of a path below /v1.
func (c *Client) urlOf(path string) string { return c.base.String() + path }

// BaseURL is the URL of the API, including /v1.
func (c *Client) BaseURL() string { return c.base.String() }

// RateLimit returns the rate limit headers of the latest response that had them, or
// false if there was none yet. It doesn't send a request.
func (c *Client) RateLimit() (RateLimit, bool) { return c.gate.lastSeen() }

// CloseIdleConnections closes connections that are kept open for later calls.
func (c *Client) CloseIdleConnections() { c.http.CloseIdleConnections() }
