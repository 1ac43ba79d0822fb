package api

import (
	"crypto/sha256"
	"encoding/base64"
	"net/http"
	"strconv"
	"strings"

	"animalstore"
)

// etagOf is a strong validator of a body: the same bytes have the same one, on
// every instance and after every restart.
func etagOf(body []byte) string {
	sum := sha256.Sum256(body)
	b := append(make([]byte, 0, 18), '"')
	return string(append(base64.RawURLEncoding.AppendEncode(b, sum[:12]), '"'))
}

// entity is a body with the header fields that follow from it.
type entity struct {
	body   []byte
	fields *[2]string // its ETag and Content-Length
}

func newEntity(body []byte) entity {
	return entity{body, &[2]string{etagOf(body), strconv.Itoa(len(body))}}
}

// write answers with the body and its ETag, or with 304 where the caller has that
// body already.
func (e entity) write(w http.ResponseWriter, r *request, status int) error {
	tag := e.fields[0]
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	if reads {
		if err := r.checkIfMatch(tag); err != nil {
			return err
		}
	}
	w.Header()["ETag"] = e.fields[0:1:1]
	if reads && r.hasAlready(tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	return writeBody(w, status, e.body, e.fields[1:2:2])
}

// hasAlready reports whether the caller named this tag in If-None-Match.
func (r *request) hasAlready(tag string) bool {
	values := r.Header["If-None-Match"]
	return values != nil && anyTag(values, func(t string) bool { return strings.TrimPrefix(t, "W/") == tag })
}

// checkIfMatch refuses a request that is meant for another state of a resource
// than the one with this tag. Where there is none, the tag is "" and nothing
// matches, not even "*".
func (r *request) checkIfMatch(tag string) error {
	values := r.Header["If-Match"]
	if values == nil || tag != "" && anyTag(values, func(t string) bool { return t == tag }) {
		return nil
	}
	if tag == "" {
		return animalstore.Errorf(animalstore.PreconditionFailed, "If-Match asks for something that is there, and there is nothing yet: leave it out to add it")
	}
	return animalstore.Errorf(animalstore.PreconditionFailed, "If-Match does not have the ETag this has now, quotes included: it was changed since you read it, or the tag is not one; read it again, and decide anew")
}

// anyTag reports whether one of a header's entity tags is ok, or the header is
// "*", which stands for whatever there is.
func anyTag(values []string, ok func(tag string) bool) bool {
	rest := strings.Join(values, ",")
	if strings.TrimSpace(rest) == "*" {
		return true
	}
	for {
		rest = strings.TrimLeft(rest, " \t,")
		start := strings.IndexByte(rest, '"')
		if start < 0 || start > 0 && rest[:start] != "W/" {
			return false // the end, or no list of tags
		}
		end := strings.IndexByte(rest[start+1:], '"')
		if end < 0 {
			return false
		}
		tag := rest[:start+1+end+1]
		if ok(tag) {
			return true
		}
		rest = rest[len(tag):]
	}
}
