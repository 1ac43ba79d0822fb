package e2e

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	goclient "animalstore/client"
	"animalstore/internal/testenv"
)

// pet is a pet as a client sees it. It isn't the domain's type, because this package
// tests only the interface.
type pet struct {
	ID         int64  `json:"id"`
	Name       string `json:"name"`
	CategoryID int64  `json:"categoryId"`
	Status     string `json:"status"`
}

// client calls a server with one key, on its own connections.
type client struct {
	url  string
	key  string
	http *http.Client
}

func newClient(t testing.TB, s *server, key string) *client {
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &client{url: s.url, key: key, http: &http.Client{Transport: transport, Timeout: testenv.Deadline}}
}

// response is an HTTP response with its whole body.
type response struct {
	status int
	header http.Header
	body   string
}

// once is a reader that can't be rewound, so that no transport sends a request twice by
// itself.
type once struct{ io.Reader }

// try sends a request. The error is the connection's.
func (c *client) try(method, path, body string, headers ...string) (response, error) {
	var content io.Reader
	if body != "" {
		content = once{strings.NewReader(body)}
	}
	req, err := http.NewRequest(method, c.url+path, content)
	if err != nil {
		return response{}, err
	}
	if body != "" {
		req.ContentLength = int64(len(body))
	}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return response{}, err
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	return response{resp.StatusCode, resp.Header, string(got)}, err
}

// do is like try, but a failed connection fails the test.
func (c *client) do(t testing.TB, method, path, body string, headers ...string) response {
	t.Helper()
	a, err := c.try(method, path, body, headers...)
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return a
}

func (c *client) get(t testing.TB, path string) response {
	t.Helper()
	return c.do(t, "GET", path, "")
}

// wantStatus checks the status of a response and, for an Error, its code.
func wantStatus(t testing.TB, a response, status int, code string) {
	t.Helper()
	if a.status != status || code != "" && !strings.Contains(a.body, `"code":"`+code+`"`) {
		t.Fatalf("got %d %s, want %d %s", a.status, a.body, status, code)
	}
}

func newPetBody(name string, category int64, status string) string {
	body, err := json.Marshal(map[string]any{"name": name, "categoryId": category, "status": status})
	if err != nil {
		panic(err)
	}
	return string(body)
}

func decodePet(body string) (pet, error) {
	var p pet
	err := json.Unmarshal([]byte(body), &p)
	return p, err
}

// list pages through a list.
func list[T any](t testing.TB, c *client, path string) iter.Seq[T] {
	return func(yield func(T) bool) {
		t.Helper()
		for next := path + "?limit=100"; next != ""; {
			a := c.get(t, next)
			wantStatus(t, a, 200, "")
			var page []T
			if err := json.Unmarshal([]byte(a.body), &page); err != nil {
				t.Fatal(err)
			}
			for _, item := range page {
				if !yield(item) {
					return
				}
			}
			next = nextPage(a.header)
		}
	}
}

// allPets returns all pets down to, but not including, id until.
func (c *client) allPets(t testing.TB, until int64) map[int64]pet {
	t.Helper()
	all := map[int64]pet{}
	last := int64(1<<63 - 1)
	for p := range list[pet](t, c, "/v1/pets") {
		if p.ID >= last {
			t.Fatalf("id %d is listed after id %d", p.ID, last)
		}
		if last = p.ID; p.ID <= until {
			break
		}
		all[p.ID] = p
	}
	return all
}

// nextPage is the address of the next page, or "".
func nextPage(h http.Header) string {
	for link := range strings.SplitSeq(h.Get("Link"), ", ") {
		if target, ok := strings.CutSuffix(link, `>; rel="next"`); ok {
			return strings.TrimPrefix(target, "<")
		}
	}
	return ""
}

// ledger records the pets that servers acknowledged, and rejects an id used twice.
type ledger struct {
	pets map[int64]pet
}

func newLedger() *ledger { return &ledger{pets: map[int64]pet{}} }

func (l *ledger) add(p pet) error {
	if old, taken := l.pets[p.ID]; taken {
		return fmt.Errorf("id %d was used twice: for %+v and for %+v", p.ID, old, p)
	}
	l.pets[p.ID] = p
	return nil
}

// missing counts the pets of the ledger above id from that aren't in stored exactly as
// acknowledged, and describes the first few.
func (l *ledger) missing(stored map[int64]pet, from int64) (n int, which []string) {
	for id, p := range l.pets {
		if got, ok := stored[id]; id > from && (!ok || got != p) {
			if n++; n <= 5 {
				which = append(which, fmt.Sprintf("acknowledged %+v, stored %+v", p, got))
			}
		}
	}
	return n, which
}

// rawConn is a bare HTTP/1.1 connection: it does nothing by itself; above all it never
// sends a request a second time.
type rawConn struct {
	net.Conn
	r        *bufio.Reader
	answered int // requests answered on it
}

// dial connects to a server. The connection is closed when the test ends.
func dial(t testing.TB, s *server) *rawConn {
	t.Helper()
	c, err := tryDial(s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func tryDial(s *server) (*rawConn, error) {
	scheme, addr, _ := strings.Cut(s.url, "://")
	c, err := net.DialTimeout("tcp", addr, testenv.Deadline)
	if err != nil {
		return nil, err
	}
	if scheme == "https" { // the handshake comes with the first request
		c = tls.Client(c, &tls.Config{InsecureSkipVerify: true})
	}
	c.SetDeadline(time.Now().Add(testenv.Deadline))
	return &rawConn{Conn: c, r: bufio.NewReader(c)}, nil
}

// message is a request in its wire format.
func message(method, path, key, body string) string {
	m := fmt.Sprintf("%s %s HTTP/1.1\r\nHost: test\r\n", method, path)
	if key != "" {
		m += "Authorization: Bearer " + key + "\r\n"
	}
	if body != "" {
		m += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	return m + "\r\n" + body
}

func (c *rawConn) send(t testing.TB, text string) {
	t.Helper()
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatalf("send: %v", err)
	}
}

// receive reads a whole response. closes reports whether the server will close the
// connection after it.
func (c *rawConn) receive() (a response, closes bool, err error) {
	resp, err := http.ReadResponse(c.r, nil)
	if err != nil {
		return response{}, false, err
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return response{}, false, fmt.Errorf("in the middle of a response: %w", err)
	}
	c.answered++
	return response{resp.StatusCode, resp.Header, string(body)}, resp.Close, nil
}

func (c *rawConn) mustReceive(t testing.TB) response {
	t.Helper()
	a, _, err := c.receive()
	if err != nil {
		t.Fatalf("receive: %v", err)
	}
	return a
}

// wasReset reports whether the other side's system reset the connection.
func wasReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

// newGoClient returns a Go client that soon tries again.
func newGoClient(t testing.TB, url, key string, options ...goclient.Option) *goclient.Client {
	t.Helper()
	c, err := goclient.New(url, key, append(options, goclient.WithBackoff(10*time.Millisecond, 100*time.Millisecond))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	return c
}
