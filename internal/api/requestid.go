package api

import (
	"crypto/rand"
	"net/http"
	"strconv"
	"sync/atomic"
)

// A generated id is unique in this process because of its counter, and among
// processes because of its random prefix.
var (
	idPrefix  = rand.Text()[:10] + "-"
	idCounter atomic.Uint64
)

// requestID is the id that a client or proxy gave the request, if it's safe to
// log and send back, or else a new one.
func requestID(r *http.Request) string {
	if ids := r.Header["X-Request-Id"]; len(ids) == 1 && validRequestID(ids[0]) {
		return ids[0]
	}
	b := append(make([]byte, 0, 32), idPrefix...)
	return string(strconv.AppendUint(b, idCounter.Add(1), 36))
}

func validRequestID(id string) bool {
	if id == "" || len(id) > 64 {
		return false
	}
	for i := range len(id) {
		switch c := id[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '_', c == '-':
		default:
			return false
		}
	}
	return true
}
