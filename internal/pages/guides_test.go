package pages

import (
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"

	"animalstore"
	"animalstore/docs"
)

var (
	link = regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	id   = regexp.MustCompile(` id="([^"]*)"`)
)

// served are the paths that other packages serve.
var served = map[string]bool{"/openapi.yaml": true, "/openapi.json": true, "/livez": true, "/readyz": true}

// wantLinks checks that everything a page refers to exists, sections included.
func wantLinks(t *testing.T, p *Pages, path, html string) {
	t.Helper()
	for _, ref := range link.FindAllStringSubmatch(html, -1) {
		to, section, _ := strings.Cut(ref[1], "#")
		if strings.HasPrefix(ref[0], "href") && (strings.HasPrefix(to, "http://127.0.0.1:") || strings.HasPrefix(to, "https://")) {
			continue // a server that the reader starts, or another website
		}
		target := html
		if to != "" {
			if served[to] {
				continue
			}
			if !p.Has(to) {
				t.Errorf("%s: links to %s, which doesn't exist", path, ref[1])
				continue
			}
			if section != "" {
				target = body(t, fetchPage(p, "GET", to, nil))
			}
		}
		if section != "" && !strings.Contains(target, ` id="`+section+`"`) {
			t.Errorf("%s: links to %s, but there is no such section", path, ref[1])
		}
	}
	seen := map[string]bool{}
	for _, m := range id.FindAllStringSubmatch(html, -1) {
		if seen[m[1]] {
			t.Errorf("%s: two elements have the id %s", path, m[1])
		}
		seen[m[1]] = true
	}
}

// TestGuides: every guide is served, with all of its text and code, and is in the
// index.
func TestGuides(t *testing.T) {
	p := newPages(animalstore.Production, "")
	index := body(t, fetchPage(p, "GET", "/docs/guides", nil))
	names := 0
	fs.WalkDir(docs.Files, ".", func(file string, _ fs.DirEntry, err error) error {
		name, ok := strings.CutSuffix(file, ".md")
		if !ok {
			return err
		}
		names++
		path := "/docs/guides/" + name
		if !p.Has(path) {
			t.Errorf("%s isn't served", path)
			return err
		}
		html := body(t, fetchPage(p, "GET", path, nil))
		wantLinks(t, p, path, html)
		text, _ := fs.ReadFile(docs.Files, file)
		title, _, _ := strings.Cut(strings.TrimPrefix(string(text), "# "), "\n")
		if !strings.Contains(html, "<h1>"+title) {
			t.Errorf("%s: got no title %q", path, title)
		}
		if got, want := strings.Count(html, "<figure"), strings.Count(string(text), "\n```")/2; got != want {
			t.Errorf("%s: got %d code blocks, want %d", path, got, want)
		}
		for _, wrong := range []string{"raw HTML omitted", ".md\"", ".md#", "](", "|---|"} {
			if strings.Contains(html, wrong) {
				t.Errorf("%s: got %q in the page", path, wrong)
			}
		}
		if !strings.Contains(html, `action="/docs/search"`) || !strings.Contains(html, `href="/docs/guides/quickstart"`) {
			t.Errorf("%s has no search, or no links to the other guides", path)
		}
		if !strings.Contains(name, "/") && !strings.Contains(index, `href="`+path+`"`) {
			t.Errorf("%s isn't in the index", path)
		}
		return nil
	})
	if names < 10 {
		t.Errorf("got %d guides and decisions, want them all", names)
	}
	if first, second := strings.Index(index, "/quickstart"), strings.Index(index, "/callers"); first < 0 || first > second {
		t.Error("the quick start isn't first in the index")
	}
	for _, path := range []string{"/docs/guides/nothing", "/docs/guides/quickstart.md", "/docs/guides/../guides", "/docs/guides/decisions", "/docs/guides/docs"} {
		if p.Has(path) {
			t.Errorf("%s exists, want nothing there", path)
		}
	}
}

// TestCodesHaveSections: the guide says what to do about every code, in a section that the
// console links to.
func TestCodesHaveSections(t *testing.T) {
	guide := body(t, fetchPage(newPages(animalstore.Production, ""), "GET", guidePath("callers"), nil))
	for _, code := range animalstore.Codes {
		if section := `id="` + strings.ReplaceAll(string(code), "_", "-") + `"`; !strings.Contains(guide, section) {
			t.Errorf("got no section %s in docs/callers.md", section)
		}
	}
}

// TestRunbooks: every alert links to what a server shows about it.
func TestRunbooks(t *testing.T) {
	rules, err := os.ReadFile("../../packaging/prometheus/animalstore.rules.yml")
	if err != nil {
		t.Fatal(err)
	}
	p := newPages(animalstore.Production, "")
	alerts := strings.Split(string(rules), "- alert: ")[1:]
	for _, alert := range alerts {
		name, _, _ := strings.Cut(alert, "\n")
		link := regexp.MustCompile(`runbook_url: https://pets\.example(/\S+)#(\S+)`).FindStringSubmatch(alert)
		if link == nil || !p.Has(link[1]) {
			t.Errorf("%s: got the link %q, want one to a page", name, link)
			continue
		}
		html := body(t, fetchPage(p, "GET", link[1], nil))
		if !strings.Contains(html, `<h3 id="`+link[2]+`">Alert `+name+" ") {
			t.Errorf("%s: there is no section %s with its name", name, link[2])
		}
	}
	if len(alerts) < 5 {
		t.Errorf("got %d alerts, want all", len(alerts))
	}
}
