// Package pages serves the pages for browsers: a landing page that links to
// everything else, a page to read about the API and try it, and the guides.
//
// The pages load nothing from other servers, and their content security policy
// enforces that. It also forbids inline scripts and styles. web/base.css has what all
// pages have in common.
package pages

import (
	"bytes"
	"embed"
	"html/template"
	"io/fs"
	"net"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"time"

	"animalstore"
)

//go:embed web
var web embed.FS

var templates = template.Must(template.ParseFS(web, "web/*.html"))

// The content security policies of read-only pages and of the page that sends requests.
const (
	readPolicy = "default-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'; " +
		"style-src 'self'; img-src 'self'; script-src 'self'"
	tryPolicy = readPolicy + "; connect-src 'self'"
)

// Config is the content of the pages.
type Config struct {
	Environment animalstore.Environment
	Version     string
	OpenAPI     []byte // the document, in JSON
	OpenAPIYAML []byte // the same in YAML
	Guides      fs.FS  // Markdown files
	Console     bool   // link to the console
}

// Pages are the pages of one server.
type Pages struct {
	Config
	assets   *Assets
	fixed    map[string]fixed // by path
	missing  func() []byte    // the page for a path that doesn't exist
	document func() *document // of the API
	library  func() library
}

// fixed is a response that doesn't depend on the request.
type fixed struct {
	policy string // "" for none
	render func() *content
}

// New returns the pages of a deployment. Each is rendered when it's first requested.
func New(c Config) *Pages {
	p := &Pages{Config: c, assets: loadAssets()}
	p.document = sync.OnceValue(p.readDocument)
	p.library = sync.OnceValue(p.newLibrary)
	reference := fixed{tryPolicy, sync.OnceValue(p.renderReference)}
	p.fixed = map[string]fixed{
		"/docs":         reference,
		"/docs/":        reference,
		"/favicon.ico":  {"", func() *content { return p.assets.byName["favicon.ico"] }},
		"/openapi.json": {"", sync.OnceValue(func() *content { return newContent("application/json", c.OpenAPI) })},
		"/openapi.yaml": {"", sync.OnceValue(func() *content { return newContent("application/yaml", c.OpenAPIYAML) })},
	}
	p.addGuides()
	p.missing = sync.OnceValue(func() []byte { return p.renderIndex("Page not found") })
	return p
}

// Has reports whether there is a page, a document or an asset at a path.
func (p *Pages) Has(path string) bool {
	return path == "/" || path == searchPath || p.fixed[path].render != nil || p.assets.find(path) != nil
}

// Serve responds to a GET or HEAD request for a path that p has. https says whether
// the client uses HTTPS, possibly only to a proxy.
func (p *Pages) Serve(w http.ResponseWriter, r *http.Request, https bool) {
	h := w.Header()
	setHeaders(h)
	switch page := p.fixed[r.URL.Path]; {
	case page.render != nil:
		if page.policy != "" {
			h.Set("Content-Security-Policy", page.policy)
		}
		page.render().serve(w, r)
	case r.URL.Path == "/":
		h.Set("Content-Security-Policy", readPolicy)
		serveRendered(w, r, p.render("landing.html", landing{p.page("Animal Store"), address(r, https), p.keyPrefix()}))
	case r.URL.Path == searchPath:
		h.Set("Content-Security-Policy", readPolicy)
		p.serveSearch(w, r)
	default:
		p.assets.ServeHTTP(w, r)
	}
}

// setHeaders sets the headers that every page has.
func setHeaders(h http.Header) {
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-cache") // revalidated each time, and sent only if it changed
}

// ServeNotFound responds to a request for a page that doesn't exist with a page that
// lists the guides, because people follow old links to them.
func (p *Pages) ServeNotFound(w http.ResponseWriter, r *http.Request) {
	setHeaders(w.Header())
	w.Header().Set("Content-Security-Policy", readPolicy)
	w.Header().Set("Content-Type", typeHTML)
	w.Header().Set("Content-Length", strconv.Itoa(len(p.missing())))
	w.WriteHeader(http.StatusNotFound)
	if r.Method != http.MethodHead {
		w.Write(p.missing())
	}
}

// page is the data that every template needs.
type page struct {
	Title       string
	Assets      string // the prefix of their paths
	Environment animalstore.Environment
	Version     string
	Console     bool   // the server has a console
	Find        string // the text in the search box
}

// Fillers are the words that a search ignores.
func (page) Fillers() string { return fillers }

func (p *Pages) page(title string) page {
	if p.Environment != animalstore.Production {
		title += " (" + string(p.Environment) + ")"
	}
	return page{Title: title, Assets: p.assets.Prefix, Environment: p.Environment, Version: p.Version, Console: p.Console}
}

type landing struct {
	page
	Base      string // the address of this server
	KeyPrefix string
}

func (p *Pages) keyPrefix() string {
	if p.Environment == animalstore.Staging {
		return "ast_test_"
	}
	return "ast_live_"
}

// serveRendered sends a page that depends on the request.
func serveRendered(w http.ResponseWriter, r *http.Request, body []byte) {
	w.Header().Set("Content-Type", typeHTML)
	w.Header().Set("ETag", newForm(body).etag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
}

const typeHTML = "text/html; charset=utf-8"

func (p *Pages) render(name string, data any) []byte {
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, name, data); err != nil {
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
