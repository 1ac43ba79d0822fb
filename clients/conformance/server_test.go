package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"animalstore/internal/testenv"
)

// scriptedServer responds as a scenario says and records the requests.
type scriptedServer struct {
	*httptest.Server
	places places

	mu     sync.Mutex
	script []reply
	seen   []map[string]any
	more   chan struct{} // closed and replaced with each request
	last   time.Time
	closed chan struct{}
}

// startScripted starts a server for one run of a scenario. Connections aren't kept
// open: on a reused one, the transport of some languages sends a request again by
// itself.
func startScripted(t testing.TB, script []reply) *scriptedServer {
	t.Helper()
	s := &scriptedServer{more: make(chan struct{}), closed: make(chan struct{})}
	for _, r := range script {
		for range max(r.Times, 1) {
			s.script = append(s.script, r)
		}
	}
	s.Server = httptest.NewUnstartedServer(s)
	s.Config.SetKeepAlivesEnabled(false)
	s.Start()
	// The target of redirects and foreign links, which no client may contact.
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.record(r, "other host: ")
	}))
	s.places = places{"server": s.URL, "host": s.Listener.Addr().String(), "other": other.URL, "closed": testenv.RefusingAddress(t)}
	t.Cleanup(func() {
		close(s.closed)
		s.Close()
		other.Close()
	})
	return s
}

// record adds a request to those seen, and returns its position.
func (s *scriptedServer) record(r *http.Request, where string) int {
	body, _ := io.ReadAll(r.Body)
	headers := map[string]any{}
	for name, values := range r.Header {
		headers[strings.ToLower(name)] = strings.Join(values, ", ")
	}
	request := map[string]any{"method": r.Method, "path": where + canonical(r.URL.EscapedPath(), r.URL.RawQuery), "headers": headers, "text": string(body), "size": float64(len(body))}
	var decoded any
	if json.Unmarshal(body, &decoded) == nil {
		request["body"] = decoded
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	if !s.last.IsZero() {
		request["gap"] = float64(now.Sub(s.last).Microseconds()) / 1000
	}
	s.last = now
	s.seen = append(s.seen, request)
	close(s.more)
	s.more = make(chan struct{})
	return len(s.seen) - 1
}

// await waits until there were n requests.
func (s *scriptedServer) await(n int) {
	for {
		s.mu.Lock()
		seen, more := len(s.seen), s.more
		s.mu.Unlock()
		if seen >= n {
			return
		}
		select {
		case <-more:
		case <-s.closed:
			return
		}
	}
}

func (s *scriptedServer) requests() []map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen
}

func (s *scriptedServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n := s.record(r, "")
	if n >= len(s.script) {
		http.Error(w, "the scenario has no reply for this request", http.StatusTeapot)
		return
	}
	s.script[n].serve(w, r, s, n+1)
}

func (y *reply) serve(w http.ResponseWriter, r *http.Request, s *scriptedServer, number int) {
	select {
	case <-time.After(time.Duration(y.Delay) * time.Millisecond):
	case <-s.closed:
		return
	}
	s.await(y.Awaits)
	if y.Hang {
		select {
		case <-r.Context().Done():
		case <-s.closed:
		}
		return
	}
	body := y.content(s.places)
	for name, value := range y.headers(s.places, number, body) {
		w.Header()[name] = value // with the spelling of the scenario
	}
	if y.Cut != "" {
		y.cut(w, body, s)
		return
	}
	w.WriteHeader(y.Status)
	_, _ = w.Write(body)
	if y.Open {
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
		case <-s.closed:
		}
	}
}

func (y *reply) content(p places) []byte {
	switch {
	case y.Stream != nil:
		return y.frames()
	case y.Padding > 0:
		return []byte(strings.Repeat(" ", y.Padding))
	case y.Body == nil:
		return []byte(fillMoments(p.fill(y.Text).(string), time.Now()))
	}
	text, err := json.Marshal(p.fill(y.Body))
	if err != nil {
		panic(err) // it was decoded from JSON
	}
	return []byte(fillMoments(string(text), time.Now()))
}

// frames is the content of a stream.
func (y *reply) frames() []byte {
	var b bytes.Buffer
	for _, part := range y.Stream {
		if id, isEvent := part.(float64); isEvent {
			fmt.Fprintf(&b, "id: %[1]v\nevent: pet.created\ndata: "+eventJSON+"\n\n", id)
		} else {
			fmt.Fprint(&b, part)
		}
	}
	return b.Bytes()
}

// eventJSON is an event about the pet with the same id.
const eventJSON = `{"id":%[1]v,"type":"pet.created","time":"2026-05-04T03:02:01.987Z","subject":"pet/%[1]v","actor":"key",` +
	`"keyId":null,"keyName":null,"requestId":null,"data":{"id":%[1]v,"name":"Rex","categoryId":7,"status":"available"}}`

// headers returns the headers of a reply. Those of the service are defaults.
func (y *reply) headers(p places, number int, body []byte) http.Header {
	now := time.Now()
	h := http.Header{
		"X-RateLimit-Limit":     {"1000"},
		"X-RateLimit-Remaining": {strconv.Itoa(1000 - number)},
		"X-RateLimit-Reset":     {strconv.FormatInt(now.Unix()+60, 10)},
		"X-Request-Id":          {fmt.Sprintf("request-%d", number)},
		"Content-Length":        {strconv.Itoa(len(body))},
	}
	if len(body) > 0 {
		h["Content-Type"] = []string{"application/json"}
	}
	if y.Stream != nil {
		h["Content-Type"] = []string{"text/event-stream"}
		delete(h, "Content-Length")
	}
	if y.Status == http.StatusNoContent || y.Status == http.StatusNotModified {
		delete(h, "Content-Length")
	}
	for name, value := range y.Headers {
		switch v := p.fill(value).(type) {
		case nil:
			h[name] = nil // also suppresses the default of net/http
		case string:
			h[name] = []string{fillMoments(v, now)}
		case []any:
			h[name] = nil
			for _, one := range v {
				h[name] = append(h[name], fillMoments(one.(string), now))
			}
		}
	}
	return h
}

// cut closes the connection before the response, in its headers or in its body, or stalls
// in its body.
func (y *reply) cut(w http.ResponseWriter, body []byte, s *scriptedServer) {
	conn, buffer, err := http.NewResponseController(w).Hijack()
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	if y.Cut == "before" {
		return
	}
	fmt.Fprintf(buffer, "HTTP/1.1 %d %s\r\n", y.Status, http.StatusText(y.Status))
	if y.Cut == "headers" {
		fmt.Fprint(buffer, "Content-Ty")
	} else {
		_ = w.Header().Write(buffer)
		fmt.Fprintf(buffer, "\r\n%s", body[:len(body)/2])
	}
	_ = buffer.Flush()
	if y.Cut == "stall" {
		<-s.closed
	}
}
