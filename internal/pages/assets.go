package pages

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"hash"
	"io"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"time"

	swagger "github.com/swaggest/swgui/v5/static"
)

// assetFiles are the files that pages refer to. Those of Swagger UI are already
// compressed and are sent as they are.
var assetFiles = []struct {
	from fs.FS
	file string
}{
	{web, "web/icon.svg"},
	{web, "web/base.css"},
	{web, "web/landing.css"},
	{web, "web/docs.css"},
	{web, "web/docs.js"},
	{swagger.FS, "swagger-ui.css.gz"},
	{swagger.FS, "swagger-ui-bundle.js.gz"},
}

var contentTypes = map[string]string{
	".css": "text/css; charset=utf-8",
	".js":  "text/javascript; charset=utf-8",
	".svg": "image/svg+xml",
}

// assets serves files under a path that changes whenever one of them does, so that
// browsers may cache them permanently.
type assets struct {
	prefix string // of their paths
	byName map[string]*asset
}

// asset is one embedded file. It is read from the binary each time.
type asset struct {
	from        fs.FS
	file        string
	contentType string
	etag        string
	size        string // in bytes, decimal
	gzipped     bool
	unpacked    func() *unpacked // what is in it, if it's gzipped; unpacked once
}

// loadAssets runs once: the files are part of the binary.
var loadAssets = sync.OnceValue(func() *assets {
	a := &assets{byName: map[string]*asset{}}
	all := sha256.New()
	for _, f := range assetFiles {
		name, gzipped := strings.CutSuffix(path.Base(f.file), ".gz")
		found := &asset{from: f.from, file: f.file, contentType: contentTypes[path.Ext(name)], gzipped: gzipped}
		content, sum := found.open(), sha256.New()
		size, err := io.Copy(io.MultiWriter(sum, all), content)
		if err != nil {
			panic(err)
		}
		content.Close()
		found.etag, found.size = etag(sum), strconv.FormatInt(size, 10)
		found.unpacked = sync.OnceValue(found.unpack)
		a.byName[name] = found
	}
	a.prefix = "/assets/" + hex.EncodeToString(all.Sum(nil)[:6]) + "/"
	return a
})

func (a *asset) open() fs.File {
	f, err := a.from.Open(a.file)
	if err != nil {
		panic(err) // the file is embedded, so it can't be missing
	}
	return f
}

func (a *assets) find(urlPath string) *asset {
	name, ok := strings.CutPrefix(urlPath, a.prefix)
	if !ok {
		return nil
	}
	return a.byName[name]
}

func (a *assets) serve(w http.ResponseWriter, r *http.Request) {
	found := a.find(r.URL.Path)
	h := w.Header()
	h.Set("Content-Type", found.contentType)
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	if found.gzipped {
		h.Set("Vary", "Accept-Encoding")
		if !AcceptsGzip(r) {
			content := found.unpacked()
			h.Set("ETag", content.etag)
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content.body))
			return
		}
		h.Set("Content-Encoding", "gzip")
		// ServeContent sets the length only of what isn't encoded, or of a part.
		h.Set("Content-Length", found.size)
	}
	f := found.open()
	defer f.Close()
	h.Set("ETag", found.etag)
	http.ServeContent(w, r, "", time.Time{}, f.(io.ReadSeeker))
}

// unpacked is the content of a compressed file, with its own ETag.
type unpacked struct {
	body []byte
	etag string
}

// unpack is for clients that don't accept gzip, such as curl. It takes long enough
// that it must not be done for each of them.
func (a *asset) unpack() *unpacked {
	f := a.open()
	defer f.Close()
	packed, err := gzip.NewReader(f)
	if err != nil {
		panic(err)
	}
	body, err := io.ReadAll(packed)
	if err != nil {
		panic(err)
	}
	sum := sha256.New()
	sum.Write(body)
	return &unpacked{body, etag(sum)}
}

// AcceptsGzip reports whether a client accepts responses in gzip.
func AcceptsGzip(r *http.Request) bool {
	named, other := "", "" // the weights of gzip and of *
	for part := range strings.SplitSeq(strings.Join(r.Header["Accept-Encoding"], ","), ",") {
		coding, weight, _ := strings.Cut(strings.ReplaceAll(part, " ", ""), ";")
		weight = cmp.Or(weight, "q=1")
		switch {
		case strings.EqualFold(coding, "gzip"):
			named = weight
		case coding == "*":
			other = weight
		}
	}
	_, value, _ := strings.Cut(cmp.Or(named, other), "=")
	return strings.Trim(value, "0.") != "" // not absent, and not zero
}

// etag returns an ETag with the hash of the content.
func etag(h hash.Hash) string {
	return fmt.Sprintf("%q", base64.RawURLEncoding.EncodeToString(h.Sum(nil)[:12]))
}
