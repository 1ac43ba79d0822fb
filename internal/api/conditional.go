package api

import (
	"encoding/binary"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"

	"animalstore"

	"github.com/cespare/xxhash/v2"
)

// etagOf is the strong ETag of a body. It depends on nothing but the bytes, so
// it's the same on every instance and after every restart.
func etagOf(body []byte) string {
	sum := binary.BigEndian.AppendUint64(make([]byte, 0, 8), xxhash.Sum64(body))
	return `"` + hex.EncodeToString(sum) + `"`
}

// entity is a body with the header fields that depend on it.
type entity struct {
	body   []byte
	tag    string // its ETag
	length string // its Content-Length
}

func newEntity(body []byte) entity { return taggedEntity(body, etagOf(body)) }

func taggedEntity(body []byte, tag string) entity {
	return entity{body, tag, strconv.Itoa(len(body))}
}

// write sends the body and its ETag, or 304 if the caller already has that body.
// The error is for an If-Match that doesn't match.
func (e entity) write(w http.ResponseWriter, r *request, status int) error {
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	if reads {
		if err := r.checkIfMatch(e.tag); err != nil {
			return err
		}
	}
	setHeader(w, "ETag", e.tag)
	if reads && r.alreadyHas(e.tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	writeBody(w, status, e.body, e.length)
	return nil
}

// alreadyHas reports whether If-None-Match contains this tag.
func (r *request) alreadyHas(tag string) bool {
	values := r.Header["If-None-Match"]
	return values != nil && anyTag(values, func(t string) bool { return strings.TrimPrefix(t, "W/") == tag })
}

// checkIfMatch returns an error if If-Match is present and doesn't contain this
// tag, the resource's current one. A resource that doesn't exist has the tag "",
// which nothing matches, not even "*".
func (r *request) checkIfMatch(tag string) error {
	values := r.Header["If-Match"]
	if values == nil || tag != "" && anyTag(values, func(t string) bool { return t == tag }) {
		return nil
	}
	if tag == "" {
		return animalstore.Errorf(animalstore.PreconditionFailed, "doesn't exist yet (If-Match): omit that header to create it")
	}
	return animalstore.Errorf(animalstore.PreconditionFailed, "If-Match doesn't contain the current ETag: read the resource again and retry with its ETag, quotes included")
}

// checkIfNoneMatch is for changes: it returns an error if If-None-Match contains the tag
// of the resource that is about to be changed.
func (r *request) checkIfNoneMatch(tag string) error {
	if !r.alreadyHas(tag) {
		return nil
	}
	return animalstore.Errorf(animalstore.PreconditionFailed, "already exists (If-None-Match): omit that header to update it")
}

// anyTag reports whether ok is true for one of a header's entity tags, or the
// header is "*", which stands for any tag.
func anyTag(values []string, ok func(tag string) bool) bool {
	rest := strings.Join(values, ",")
	if strings.TrimSpace(rest) == "*" {
		return true
	}
	for {
		rest = strings.TrimLeft(rest, " \t,")
		start := strings.IndexByte(rest, '"')
		if start < 0 || start > 0 && rest[:start] != "W/" {
			return false // the end, or not a list of tags
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
