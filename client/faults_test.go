package client_test

import (
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"

	"animalstore/client"
	"animalstore/client/clienttest"
)

// fault is one way in which a request can fail between client and service.
type fault func(w http.ResponseWriter, r *http.Request, service http.Handler)

// clean is the User-Agent of clients that get no faults.
const clean = "clean"

// faults are all faults. In those named "done" the service carries out the request, but
// its response doesn't arrive.
var faults = map[string]fault{
	"refused for now": func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		w.Header().Set("Retry-After", "1")
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, `{"code":"overloaded","message":"try again in a moment","status":503}`)
	},
	"refused by a proxy":    proxyPage(http.StatusServiceUnavailable, false),
	"done, proxy gives up":  proxyPage(http.StatusGatewayTimeout, true),
	"done, proxy is broken": proxyPage(http.StatusBadGateway, true),
	"cut before it is read": func(w http.ResponseWriter, r *http.Request, _ http.Handler) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err == nil {
			conn.Close()
		}
	},
	"cut before it is done": func(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) },
	"done, cut before the response": func(_ http.ResponseWriter, r *http.Request, service http.Handler) {
		service.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	},
	"done, half the headers": func(w http.ResponseWriter, r *http.Request, service http.Handler) {
		service.ServeHTTP(httptest.NewRecorder(), r)
		conn, buffer, err := http.NewResponseController(w).Hijack()
		if err == nil {
			fmt.Fprint(buffer, "HTTP/1.1 201 Created\r\nContent-Ty")
			buffer.Flush()
			conn.Close()
		}
	},
	"done, half a body": mangled(func(body []byte) ([]byte, int) { return body[:len(body)/2], len(body) }),
	"done, too long a length": mangled(func(body []byte) ([]byte, int) {
		return body, len(body) + 7
	}),
	"done, too short a length": mangled(func(body []byte) ([]byte, int) {
		short := body[:max(0, len(body)-3)]
		return short, len(short)
	}),
	"done, an empty body": mangled(func([]byte) ([]byte, int) { return nil, 0 }),
}

// proxyPage is the response of a proxy that can't reach the service or has stopped
// waiting for it.
func proxyPage(status int, done bool) fault {
	return func(w http.ResponseWriter, r *http.Request, service http.Handler) {
		if done {
			service.ServeHTTP(httptest.NewRecorder(), r)
		}
		w.Header().Set("Content-Type", "text/html")
		w.WriteHeader(status)
		fmt.Fprint(w, "<html><h1>Sorry</h1></html>")
	}
}

// mangled replaces the body of the service's response, and its length.
func mangled(change func(body []byte) ([]byte, int)) fault {
	return func(w http.ResponseWriter, r *http.Request, service http.Handler) {
		response := httptest.NewRecorder()
		service.ServeHTTP(response, r)
		maps.Copy(w.Header(), response.Header())
		if response.Code == http.StatusNoContent { // no body to mangle
			panic(http.ErrAbortHandler)
		}
		body, length := change(response.Body.Bytes())
		w.Header().Set("Content-Length", strconv.Itoa(length))
		w.WriteHeader(response.Code)
		w.Write(body)
		if length > len(body) {
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	}
}

// TestOneFault runs every operation that changes something once with every fault: the
// change is made exactly once and reported as made, or its outcome is reported as
// unknown.
func TestOneFault(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var next fault // nil: none
		store := clienttest.New(t, clienttest.InMemory(), clienttest.WithMiddleware(func(service http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if now := next; now != nil && r.UserAgent() != clean {
					next = nil
					now(w, r, service)
					return
				}
				service.ServeHTTP(w, r)
			})
		}))
		w := &world{t: t, clean: store.NewClient(store.Key, client.WithUserAgent(clean))}
		for name, fault := range faults {
			for _, change := range changes {
				w.prepare()
				w.what = change.name + ", " + name
				next = fault
				err := change.make(w, store.Client)
				if next != nil {
					t.Fatalf("%s: the fault was not injected", w.what)
				}
				w.verify(change, err)
				if err != nil && (!change.mayFail || name == "refused for now") {
					t.Errorf("%s: got %v, want success after one fault", w.what, err)
				}
			}
		}
	})
}
