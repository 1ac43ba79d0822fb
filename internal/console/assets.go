package console

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
	"sync"
)

// assets are the files that only the console needs. Their path changes with their
// content, so that browsers may keep them.
type assets struct {
	prefix string
	files  map[string]asset
}

type asset struct {
	contentType string
	body        []byte
}

var loadAssets = sync.OnceValue(func() *assets {
	a := &assets{files: map[string]asset{}}
	all := sha256.New()
	for _, file := range []struct{ name, contentType string }{
		{"console.css", "text/css; charset=utf-8"},
		{"content.css", "text/css; charset=utf-8"},
		{"console.js", "text/javascript; charset=utf-8"},
		{"find.js", "text/javascript; charset=utf-8"},
		{"import.js", "text/javascript; charset=utf-8"},
		{"marks.js", "text/javascript; charset=utf-8"},
		{"drop.js", "text/javascript; charset=utf-8"},
		{"upload.js", "text/javascript; charset=utf-8"},
		{"stream.js", "text/javascript; charset=utf-8"},
	} {
		body, err := web.ReadFile("web/" + file.name)
		if err != nil {
			panic(err) // it is embedded
		}
		all.Write(body)
		a.files[file.name] = asset{file.contentType, body}
	}
	a.prefix = "/console/assets/" + hex.EncodeToString(all.Sum(nil)[:6]) + "/"
	return a
})

func (c *Console) serveAsset(w http.ResponseWriter, r *http.Request) {
	file, ok := c.assets.files[strings.TrimPrefix(r.URL.Path, c.assets.prefix)]
	if !ok || r.Method != http.MethodGet && r.Method != http.MethodHead {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "public, max-age=31536000, immutable")
	w.Header().Set("Content-Type", file.contentType)
	w.Write(file.body)
}
