package http1

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"animalstore/internal/testenv"
)

// TestWrongLength: a handler writes a body whose length differs from the declared one.
// The rest must not be mistaken for the next response.
func TestWrongLength(t *testing.T) {
	for wrote, want := range map[string]string{"": "", "four": "four", "six...": ""} {
		l := listen(t, newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Length", "5")
			io.WriteString(w, wrote)
		})))
		c := dial(t, l)
		fmt.Fprint(c, simpleGet+simpleGet)
		b, err := io.ReadAll(c)
		if _, body, _ := strings.Cut(string(b), "\r\n\r\n"); body != want || err != nil {
			t.Errorf("with a body of %q got %q, %v, want %q and EOF", wrote, body, err, want)
		}
	}
}

// TestOwnFields: a handler sets the date itself, and sets two lengths, neither of which
// can be trusted.
func TestOwnFields(t *testing.T) {
	const date = "Thu, 01 Jan 1970 00:00:00 GMT"
	l := listen(t, newServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header()["Content-Length"] = []string{"3", "4"}
		w.Header().Set("Date", date)
		io.WriteString(w, "hello")
	})))
	c := dial(t, l)
	io.WriteString(c, simpleGet)
	res, text := readText(t, c)
	if dates := res.Header["Date"]; len(dates) != 1 || dates[0] != date || text != "hello" {
		t.Errorf("got %q %q, want one date and hello", dates, text)
	}
}

// TestUnusualHandlers: handlers do things that no response can express. A client sees
// the same response as from net/http.
func TestUnusualHandlers(t *testing.T) {
	set := func(name string, values ...string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Content-Type"] = []string{"text/plain"}
			w.Header()[name] = values
			io.WriteString(w, "hello")
		}
	}
	for name, handler := range map[string]http.HandlerFunc{
		"a length that isn't a number":        set("Content-Length", "abc"),
		"a negative length":                   set("Content-Length", "-5"),
		"no length":                           set("Content-Length"),
		"an encoding":                         set("Transfer-Encoding", "chunked"),
		"a name with a line end":              set("X-A: b\r\nX-B", "c"),
		"an empty name":                       set("", "c"),
		"a value with a line end":             set("X-A", "b\r\nX-B: c"),
		"a connection that stays":             set("Connection", "keep-alive"),
		"a connection that does not":          set("Connection", "close"),
		"an unknown status":                   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(299) },
		"an invalid status":                   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(99) },
		"a body where none is allowed":        func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204); io.WriteString(w, "hello") },
		"an empty body where none is allowed": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(204); w.Write(nil) },
		"a length without a body": func(w http.ResponseWriter, _ *http.Request) {
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
			synctest.Test(t, func(t *testing.T) {
				p := testenv.NewPipes()
				serve(t, NewServer(p, newServer(handler), anyTarget, discard))
				const other = "GET /%61 HTTP/1.1\r\nHost: a\r\n\r\n"
				if got, want := talk(p, simpleGet+simpleGet), talk(p, other+other); got != want {
					t.Errorf("got  %s\nwant %s", got, want)
				}
			})
		})
	}
}
