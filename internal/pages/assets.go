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

// assets are the files that pages refer to. Their path changes whenever one of them
// does, so that browsers may cache them permanently.
type assets struct {
	prefix string // of their paths
	byName map[string]*content
}

// loadAssets runs once: the files are part of the binary.
var loadAssets = sync.OnceValue(func() *assets {
	a := &assets{byName: map[string]*content{}}
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
		body, err := web.ReadFile(file)
		if err != nil {
			panic(err) // the file is embedded, so it can't be missing
		}
		all.Write(body)
		a.byName[path.Base(file)] = newContent(contentType, body)
	}
	a.prefix = "/assets/" + strconv.FormatUint(all.Sum64(), 16) + "/"
	return a
})

// AssetsPrefix is the prefix of the paths of base.css, page.js and icon.svg. Other
// packages use it for pages in the same style.
func AssetsPrefix() string { return loadAssets().prefix }

func (a *assets) find(urlPath string) *content {
	name, ok := strings.CutPrefix(urlPath, a.prefix)
	if !ok {
		return nil
	}
	return a.byName[name]
}

func (a *assets) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	a.find(r.URL.Path).serve(w, r)
}
