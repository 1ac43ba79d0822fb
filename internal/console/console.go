// Package console serves the web console: pages where someone with a key sees and changes
// the store and its keys, and sees its traffic.
//
// The console is a client of the API. Everything it shows and does is a call with
// package client, over a transport that leads to the API's handler in this process
// (api.go), as the key that signed in. So permissions, limits, rules and their
// messages exist once, in the API.
//
// Its pages need no JavaScript, and look like those of package pages, whose stylesheet
// they use. routes.go lists them all.
package console

import (
	"cmp"
	"context"
	"embed"
	"html/template"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"animalstore"
	"animalstore/internal/pages"
)

//go:embed web
var web embed.FS

const assetsPath = "/console/assets/"

// loadAssets runs once: the files are part of the binary.
var loadAssets = sync.OnceValue(func() *pages.Assets { return pages.NewAssets(assetsPath, web) })

// policy is the content security policy of all pages.
const policy = "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; " +
	"style-src 'self'; img-src 'self'; script-src 'self'; connect-src 'self'"

// requestTimeout is the usual RequestTimeout.
const requestTimeout = 10 * time.Second

// maxForm is the size of a form: several times that of one with the longest name.
const maxForm = 64 << 10

// Config is what a console needs. All fields are required, except Version and
// RequestTimeout.
type Config struct {
	Environment animalstore.Environment
	Version     string
	Now         func() time.Time
	Server      Server
	Sessions    Sessions
	// RequestTimeout bounds the work on one page, and how long a file to import may take to
	// arrive. 0 means 10 seconds.
	RequestTimeout time.Duration
}

// Server is the server that a console belongs to.
type Server interface {
	// ServeAPI serves a request to the API as the key with this secret. If that is nil,
	// the request has its own credential.
	ServeAPI(w http.ResponseWriter, r *http.Request, secret *[32]byte)
	// KeyOf returns the key with this secret. The error has code invalid_api_key if the
	// key can't be used.
	KeyOf(r *http.Request, secret [32]byte) (*animalstore.Key, error)
	// ChargeAddress charges a request to the address it comes from. It returns an error
	// over the limit, and then how many seconds to wait.
	ChargeAddress(r *http.Request) (retryAfter int64, err error)
	// PetETag returns the ETag of a pet in a list, which has one only for the whole page.
	PetETag(pet animalstore.Pet) string
	// OrderETag is the same of an order.
	OrderETag(order animalstore.Order) string
	// IsHTTPS reports whether the browser uses HTTPS, possibly only to a proxy.
	IsHTTPS(r *http.Request) bool
}

// Sessions stores who is signed in. A session and a form are identified by the hash of
// a random token.
type Sessions interface {
	// CreateSession stores a session of the key with this secret.
	CreateSession(ctx context.Context, token [32]byte, secret string, expires time.Time) error
	// FindSession returns the hash of the secret, unless there is no session or it has
	// expired.
	FindSession(ctx context.Context, token [32]byte, now time.Time) (secret [32]byte, found bool, err error)
	DeleteSession(ctx context.Context, token [32]byte) error
	// UseForm reports whether this is the first time that a form is sent.
	UseForm(ctx context.Context, token [32]byte, now time.Time) (first bool, err error)
}

// Console serves the pages at /console and below.
type Console struct {
	Config
	assets  *pages.Assets
	mux     *http.ServeMux
	origin  *http.CrossOriginProtection
	imports *importSlots
	// templates returns the pages by name. It parses them once, when the first is shown: a
	// server starts without waiting for that.
	templates func() map[string]*template.Template
}

// New returns the console of a server.
func New(c Config) *Console {
	c.RequestTimeout = cmp.Or(c.RequestTimeout, requestTimeout)
	console := &Console{
		Config: c, assets: loadAssets(), mux: http.NewServeMux(), origin: http.NewCrossOriginProtection(),
		imports: &importSlots{keys: map[int64]bool{}},
	}
	console.templates = sync.OnceValue(console.parseTemplates)
	console.addRoutes()
	return console
}

// ServeHTTP implements [http.Handler].
func (c *Console) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, assetsPath) {
		c.assets.ServeHTTP(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("Cache-Control", "no-store")
	// Without a referrer, browsers send forms with the origin "null", which can't be told
	// from that of another site.
	h.Set("Referrer-Policy", "same-origin")
	if err := c.origin.Check(r); err != nil {
		v := &visit{c: c, w: w, r: r}
		v.fail(problem{
			Status: http.StatusForbidden, Heading: "Refused",
			Message: "This change came from another site. Open the console and make it there.",
		})
		return
	}
	if !slices.ContainsFunc(slowPaths, func(prefix string) bool { return strings.HasPrefix(r.URL.Path, prefix) }) {
		ctx, cancel := context.WithTimeout(r.Context(), c.RequestTimeout)
		defer cancel()
		r = r.WithContext(ctx)
	}
	limit := int64(maxForm)
	if isUpload(r) {
		limit = maxUpload
	}
	r.Body = http.MaxBytesReader(w, r.Body, limit)
	c.mux.ServeHTTP(w, r)
}
