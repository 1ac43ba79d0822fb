package pages

import (
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"

	"github.com/cespare/xxhash/v2"
)

var contentTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".ico": "image/x-icon",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// Assets are files that pages refer to. Their path changes whenever one of them does, so
// that browsers may cache them permanently.
type Assets struct {
	Prefix string // of their paths
	byName map[string]*content
}

// NewAssets returns the files in the folder web that aren't templates, below a path.
func NewAssets(below string, web fs.FS) *Assets {
	a := &Assets{byName: map[string]*content{}}
	files, err := fs.Glob(web, "web/*")
	if err != nil {
		panic(err) // the pattern is valid
	}
	all := xxhash.New()
	for _, file := range files { // in the order of their names
		contentType, ok := contentTypes[path.Ext(file)]
		if !ok {
			continue // a template
		}
		body, err := fs.ReadFile(web, file)
		if err != nil {
			panic(err) // the file is embedded, so it can't be missing
		}
		all.Write(body)
		a.byName[path.Base(file)] = newContent(contentType, body)
	}
	a.Prefix = below + strconv.FormatUint(all.Sum64(), 16) + "/"
	return a
}

// loadAssets runs once: the files are part of the binary.
var loadAssets = sync.OnceValue(func() *Assets { return NewAssets("/assets/", web) })

// AssetsPrefix is the prefix of the paths of base.css, page.js and icon.svg. Other
// packages use it for pages in the same style.
func AssetsPrefix() string { return loadAssets().Prefix }

func (a *Assets) find(urlPath string) *content {
	name, ok := strings.CutPrefix(urlPath, a.Prefix)
	if !ok {
		return nil
	}
	return a.byName[name]
}

// ServeHTTP implements [http.Handler].
func (a *Assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	file := a.find(r.URL.Path)
	if file == nil {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	file.serve(w, r)
}
