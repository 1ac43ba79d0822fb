package pages

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
)

// content is a response that is the same for every client. Both forms are kept, because
// compressing it for each request would be too slow.
type content struct {
	contentType       string
	identity, gzipped form
}

// form is content in one encoding. Each form has its own ETag.
type form struct {
	body []byte
	etag string
}

func newContent(contentType string, body []byte) *content {
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		panic(err) // the level is valid
	}
	w.Write(body) // a bytes.Buffer never fails
	w.Close()
	return &content{contentType, newForm(body), newForm(packed.Bytes())}
}

func newForm(body []byte) form {
	return form{body, fmt.Sprintf(`"%016x"`, xxhash.Sum64(body))}
}

// gzipRefused matches an Accept-Encoding that names gzip to refuse it.
var gzipRefused = regexp.MustCompile(`(?i)gzip *; *q=0(\.0*)? *(,|$)`)

func (c *content) serve(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Add("Vary", "Accept-Encoding")
	h.Set("Content-Type", c.contentType)
	form := c.identity
	accepted := strings.Join(r.Header["Accept-Encoding"], ",")
	if strings.Contains(accepted, "gzip") && !gzipRefused.MatchString(accepted) {
		form = c.gzipped
		h.Set("Content-Encoding", "gzip")
		// ServeContent sets the length only for unencoded content and for ranges.
		h.Set("Content-Length", strconv.Itoa(len(form.body)))
	}
	h.Set("ETag", form.etag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(form.body))
}
