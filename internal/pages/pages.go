// Package pages serves the pages for browsers: a landing page that links to
// everything else, and a page to read about the API and try it.
//
// The pages load nothing from other servers, and their content security policy
// enforces that. It also forbids inline scripts and styles.
package pages

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"html/template"
	"net"
	"net/http"
	"regexp"
	"strings"
	"time"

	"animalstore"
)

//go:embed web
var web embed.FS

var templates = template.Must(template.ParseFS(web, "web/*.html"))

// policy returns the content security policy of a page with these extra directives.
func policy(more ...string) string {
	return strings.Join(append([]string{
		"default-src 'none'", "base-uri 'none'", "form-action 'none'", "frame-ancestors 'none'", "style-src 'self'",
	}, more...), "; ")
}

var (
	landingPolicy = policy("img-src 'self'")
	docsPolicy    = policy("script-src 'self'", "connect-src 'self'", "img-src 'self' data:") // its style sheet contains icons
)

// Pages are the pages of one server.
type Pages struct {
	environment animalstore.Environment
	version     string
	assets      *assets
	docs        []byte
}

// New returns the pages of a deployment.
func New(environment animalstore.Environment, version string) *Pages {
	p := &Pages{environment: environment, version: version, assets: loadAssets()}
	p.docs = p.render("docs.html", "")
	return p
}

// Has reports whether there is a page or an asset at a path.
func (p *Pages) Has(path string) bool {
	return path == "/" || path == "/docs" || path == "/docs/" || p.assets.find(path) != nil
}

// Serve responds to a GET or HEAD request for a path that p has. https says whether
// the client uses HTTPS, possibly only to a proxy.
func (p *Pages) Serve(w http.ResponseWriter, r *http.Request, https bool) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	switch r.URL.Path {
	case "/":
		servePage(w, r, landingPolicy, p.render("landing.html", address(r, https)))
	case "/docs", "/docs/":
		servePage(w, r, docsPolicy, p.docs)
	default:
		p.assets.serve(w, r)
	}
}

func servePage(w http.ResponseWriter, r *http.Request, policy string, content []byte) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", policy)
	h.Set("Cache-Control", "no-cache") // revalidated each time, and sent only if it changed
	sum := sha256.New()
	sum.Write(content)
	h.Set("ETag", etag(sum))
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

func (p *Pages) render(name, base string) []byte {
	keyPrefix := "ast_live_"
	if p.environment == animalstore.Staging {
		keyPrefix = "ast_test_"
	}
	var b bytes.Buffer
	err := templates.ExecuteTemplate(&b, name, map[string]string{
		"Assets":      p.assets.prefix,
		"Base":        base,
		"Environment": string(p.environment),
		"KeyPrefix":   keyPrefix,
		"Version":     p.version,
	})
	if err != nil {
		panic(err) // a mistake in a template, which every test would find
	}
	return b.Bytes()
}

// validHost matches a name or an address, with or without a port, and nothing that
// has a special meaning in a shell.
var validHost = regexp.MustCompile(`^([0-9A-Za-z._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(:[0-9]{1,5})?$`)

// address returns the URL of this server as the client sees it. It ends up in a line
// that people paste into a shell, so the client's Host is used only if it is safe;
// otherwise the local address of the connection is used.
func address(r *http.Request, https bool) string {
	host := r.Host
	if !validHost.MatchString(host) {
		host = "127.0.0.1"
		if local, ok := r.Context().Value(http.LocalAddrContextKey).(net.Addr); ok {
			host = local.String()
		}
	}
	if https {
		return "https://" + host
	}
	return "http://" + host
}
