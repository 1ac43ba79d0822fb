package console

import (
	"bytes"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"animalstore"
	"animalstore/internal/pages"
)

// frame is what every page has.
type frame struct {
	Title       string
	Assets      string // prefix of the files of all pages
	Files       string // prefix of the files of the console
	Environment animalstore.Environment
	Version     string
	Key         *animalstore.Key // nil: signed out
	Nav         []navEntry
	Done        string // what was just done
	Here        string // the address of the page
	Posted      bool   // the page is at another address, where a form was sent
	Find        string // the text in the search box
}

type navEntry struct {
	Title, Path string
	Here        bool
	needs       animalstore.Permissions
}

var nav = []navEntry{
	{Title: "Overview", Path: "/console"},
	{Title: "Pets", Path: "/console/pets", needs: petsRead},
	{Title: "Orders", Path: "/console/orders", needs: ordersRead},
	{Title: "Categories", Path: "/console/categories", needs: petsRead},
	{Title: "Events", Path: "/console/events", needs: eventsRead},
	{Title: "Usage", Path: "/console/usage"},
	{Title: "Failed requests", Path: "/console/failures"},
	{Title: "Keys", Path: "/console/keys", needs: admin},
	{Title: "Webhooks", Path: "/console/webhooks", needs: admin},
	{Title: "System", Path: "/console/system", needs: admin},
}

// doneTexts are what a page may say was done, by the value of doneCookie.
var doneTexts = map[string]string{
	"added":         "Added.",
	"saved":         "Saved.",
	"removed":       "Removed.",
	"photo-added":   "The photo was added.",
	"photos-added":  "The photos were added.",
	"photo-removed": "The photo was removed.",
	"placed":        "The order was placed, and the pet is pending.",
	"approved":      "The order was approved. The pet stays pending.",
	"delivered":     "The order was delivered, and the pet is sold.",
	"cancelled":     "The order was cancelled, and the pet is available again.",
	"suspended":     "The key is suspended. It stops working within a second.",
	"resumed":       "The key works again.",
	"revoked":       "The key was revoked. It stops working within a second.",
	"unbanned":      "The ban was lifted.",
	"pinged":        "The ping was sent. Reload to see its result.",
	"retried":       "The delivery is due now. Reload to see its result.",
	"no-ban":        "The key wasn’t banned.",
	"unchanged":     "No change: that is already the case.",
}

func (v *visit) frame(title string) frame {
	c := v.c
	f := frame{
		Title: title + " · Animal Store", Assets: pages.AssetsPrefix(), Files: c.assets.Prefix,
		Environment: c.Environment, Version: c.Version,
	}
	if c.Environment != animalstore.Production {
		f.Title += " (" + string(c.Environment) + ")"
	}
	if v.signedIn == nil {
		return f
	}
	f.Key = v.key
	f.Done, f.Here, f.Posted = v.takeDone(), v.here(), v.r.Method == http.MethodPost
	f.Find = typedText(v.r)
	for _, entry := range nav {
		entry.Here = v.r.URL.Path == entry.Path || entry.Path != "/console" && strings.HasPrefix(v.r.URL.Path, entry.Path+"/")
		if v.may(entry.needs) {
			f.Nav = append(f.Nav, entry)
		}
	}
	return f
}

// parseTemplates returns the pages by name, each with the layout.
func (c *Console) parseTemplates() map[string]*template.Template {
	layout := template.New("layout").Funcs(functions).Funcs(template.FuncMap{"when": c.when, "ago": c.ago})
	template.Must(layout.ParseFS(web, "web/layout.html"))
	files, err := fs.Glob(web, "web/*.html")
	if err != nil {
		panic(err) // the pattern is valid
	}
	pages := map[string]*template.Template{}
	for _, file := range files {
		pages[strings.TrimSuffix(path.Base(file), ".html")] = template.Must(template.Must(layout.Clone()).ParseFS(web, file))
	}
	return pages
}

// render writes a page. Nothing is sent until the whole page is rendered.
func (v *visit) render(status int, name string, data any) error {
	var b bytes.Buffer
	if err := v.c.templates()[name].ExecuteTemplate(&b, "page", data); err != nil {
		panic(fmt.Errorf("render %s: %w", name, err)) // the API turns it into a response
	}
	if !v.begun {
		v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
		v.w.Header().Set("Content-Length", strconv.Itoa(b.Len()))
		v.w.WriteHeader(status)
	}
	v.w.Write(b.Bytes())
	return nil
}

var functions = template.FuncMap{
	"clock":  clock,
	"title":  eventTitle,
	"number": number,
	"count":  func(n int) string { return number(int64(n)) },
	"size":   size,
	"span":   span,
	"link":   withQuery,
	"label":  categoryLabel,

	"codeGuide": codeGuide,

	"state": func(k animalstore.Key, now time.Time) string { return k.State(now) },
	"join":  strings.Join,

	"visible": visible,
	"failing": failing,
	"list":    func(items ...string) []string { return items },
}

// number groups digits, so that large numbers are easy to read.
func number(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0 && digits[i-1] != '-'; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return strings.Replace(digits, "-", "−", 1)
}

func size(bytes int64) string {
	value, unit := float64(bytes), 0
	units := []string{"bytes", "KiB", "MiB", "GiB", "TiB"}
	for value >= 1024 && unit < len(units)-1 {
		value, unit = value/1024, unit+1
	}
	if unit == 0 {
		return number(bytes) + " bytes"
	}
	return strconv.FormatFloat(value, 'f', 1, 64) + " " + units[unit]
}

// span is a length of time in its two largest units.
func span(seconds int64) string {
	parts := inUnits(seconds)
	return strings.Join(parts[:min(2, len(parts))], " ")
}

// inUnits is a length of time in units, the largest first.
func inUnits(seconds int64) (parts []string) {
	for _, unit := range []struct {
		seconds int64
		name    string
	}{{86400, "day"}, {3600, "hour"}, {60, "minute"}, {1, "second"}} {
		n := seconds / unit.seconds
		seconds %= unit.seconds
		switch {
		case n == 1:
			parts = append(parts, "1 "+unit.name)
		case n > 1:
			parts = append(parts, number(n)+" "+unit.name+"s")
		}
	}
	if parts == nil {
		return []string{"0 seconds"}
	}
	return parts
}

// withQuery is a path with parameters, given as names and values. Empty ones are left
// out.
func withQuery(path string, pairs ...string) string {
	query := url.Values{}
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			query.Set(pairs[i], pairs[i+1])
		}
	}
	if len(query) == 0 {
		return path
	}
	return path + "?" + query.Encode()
}
