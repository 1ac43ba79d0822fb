package http1

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestWrongLength has a handler write another length than it said: nobody may
// take the rest for the next answer.
func TestWrongLength(t *testing.T) {
	for _, wrote := range []string{"", "four", "six..."} {
		l := listen(t, newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "5")
			io.WriteString(w, wrote)
		})))
		c := dial(t, l)
		fmt.Fprint(c, plainGet+plainGet)
		b, err := io.ReadAll(c)
		if n := strings.Count(string(b), "HTTP/1.1"); n != 1 || err != nil {
			t.Errorf("with a body of %q got %d answers, %v, want one and the end:\n%s", wrote, n, err, b)
		}
	}
}

// TestOddHandlers has handlers set header fields that no answer can have as they
// are. What a client understands of the answer is what net/http makes of it.
func TestOddHandlers(t *testing.T) {
	set := func(name string, values ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = []string{"text/plain"}
			w.Header()[name] = values
			io.WriteString(w, "hello")
		}
	}
	for name, handler := range map[string]http.HandlerFunc{
		"a length that is no number": set("Content-Length", "abc"),
		"a negative length":          set("Content-Length", "-5"),
		"no length":                  set("Content-Length"),
		"an encoding":                set("Transfer-Encoding", "chunked"),
		"a name with a line end":     set("X-A: b\r\nX-B", "c"),
		"an empty name":              set("", "c"),
		"a value with a line end":    set("X-A", "b\r\nX-B: c"),
		"a connection that stays":    set("Connection", "keep-alive"),
		"a connection that does not": set("Connection", "close"),
		"a date of its own":          set("Date", "Thu, 01 Jan 1970 00:00:00 GMT"),
		"a status nobody knows":      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(299) },
		"a status that is none":      func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(99) },
		"a body where none may be":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204); io.WriteString(w, "hello") },
		"no body where none may be":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204); w.Write(nil) },
		"a length where no body is": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "5")
			w.WriteHeader(304)
		},
		"a connection closed too late": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/plain")
			w.WriteHeader(200)
			w.Header().Set("Connection", "close")
		},
	} {
		t.Run(name, func(t *testing.T) {
			l := listen(t, newServer(handler))
			const other = "GET /%61 HTTP/1.1\r\nHost: a\r\n\r\n"
			got, _ := talk(t, l.Addr().String(), []string{plainGet + plainGet})
			want, _ := talk(t, l.Addr().String(), []string{other + other})
			if got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
		})
	}
}
