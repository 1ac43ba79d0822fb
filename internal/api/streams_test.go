package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/api"
	"animalstore/internal/testenv"
)

// stream is a stream of events that a test reads.
type stream struct {
	t      testing.TB
	res    *http.Response
	lines  *bufio.Reader
	lastID string // as a browser would send it
}

// openStream opens a stream, and fails the test if the response isn't one.
func (s *service) openStream(t testing.TB, c call) *stream {
	t.Helper()
	res := s.startStream(t, c)
	if got := res.Header.Get("Content-Type"); res.StatusCode != 200 || got != "text/event-stream" {
		body, _ := io.ReadAll(res.Body)
		t.Fatalf("got %d %s %s, want a stream", res.StatusCode, got, body)
	}
	for _, name := range append([]string{"X-Request-Id"}, limitHeaders...) {
		if res.Header.Get(name) == "" {
			t.Errorf("got no %s, want it on a stream, too", name)
		}
	}
	return &stream{t: t, res: res, lines: bufio.NewReader(res.Body)}
}

func (s *service) startStream(t testing.TB, c call) *http.Response {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, "GET", s.url+c.path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Accept": {"text/event-stream"}, "Authorization": {"Bearer " + s.owner}}
	if c.key != "" {
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	for name, values := range c.header {
		req.Header[name] = values
	}
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	res, err := transport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res
}

// block reads up to the next empty line. It returns io.EOF when the stream has ended.
func (st *stream) block() (fields map[string]string, err error) {
	fields = map[string]string{}
	for {
		line, err := st.lines.ReadString('\n')
		if err != nil {
			return nil, err
		}
		line = strings.TrimSuffix(line, "\n")
		if line == "" {
			return fields, nil
		}
		name, value, _ := strings.Cut(line, ":")
		fields[name] = strings.TrimPrefix(value, " ")
		if name == "id" {
			st.lastID = fields[name]
		}
	}
}

// next reads the next event.
func (st *stream) next() animalstore.Event {
	st.t.Helper()
	for {
		fields, err := st.block()
		if err != nil {
			st.t.Fatalf("got %v, want an event", err)
		}
		if fields["data"] == "" {
			continue
		}
		var e animalstore.Event
		if err := json.Unmarshal([]byte(fields["data"]), &e); err != nil {
			st.t.Fatal(err)
		}
		if fields["id"] != fmt.Sprint(e.ID) || fields["event"] != string(e.Type) {
			st.t.Errorf("got id %q and event %q with %s", fields["id"], fields["event"], fields["data"])
		}
		return e
	}
}

// awaitEnd reads until the stream ends, and fails the test if it is cut off or goes on.
func (st *stream) awaitEnd() {
	st.t.Helper()
	timer := time.AfterFunc(testenv.Deadline, func() { st.res.Body.Close() })
	defer timer.Stop()
	if _, err := io.Copy(io.Discard, st.lines); err != nil {
		st.t.Errorf("the stream didn't end, or was cut off: %v", err)
	}
}

func (s *service) createPet(t testing.TB, name string) {
	t.Helper()
	s.do(t, call{method: "POST", path: "/v1/pets", body: fmt.Sprintf(`{"name":%q,"categoryId":7}`, name)}).want(t, 201, "")
}

// TestStream follows a stream, and resumes it where it broke.
func TestStream(t *testing.T) {
	s := start(t)
	s.createPet(t, "before")
	all := s.openStream(t, call{path: "/v1/events", key: s.admin})
	for _, want := range []animalstore.EventType{"key.created", "key.created", "pet.created", "category.updated"} {
		if got := all.next().Type; got != want {
			t.Errorf("a stream from the start: got %s, want %s", got, want)
		}
	}
	all.res.Body.Close()
	// limit, wait and an empty Last-Event-ID mean nothing here.
	st := s.openStream(t, call{path: "/v1/events?after=latest&type=pet.*&limit=0&wait=99", header: http.Header{"Last-Event-Id": {""}}})
	first, err := st.block()
	if err != nil || st.lastID == "" || first["data"] != "" {
		t.Fatalf("got %v, %v first, want the position", first, err)
	}
	s.createPet(t, "Rex")
	if e := st.next(); e.Type != animalstore.PetCreated || !strings.Contains(string(e.Data), "Rex") {
		t.Errorf("got %s %s, want the new pet", e.Type, e.Data)
	}
	st.res.Body.Close()
	s.add(t, some(250)...) // more than is sent at once
	resumed := s.openStream(t, call{path: "/v1/events?after=latest&type=pet.*", header: http.Header{"Last-Event-Id": {st.lastID}}})
	for i := range 250 {
		if e := resumed.next(); !strings.Contains(string(e.Data), fmt.Sprintf(`"pet %d"`, i)) {
			t.Fatalf("got %s as event %d after the resumption, want pet %d", e.Data, i, i)
		}
	}
	testenv.Eventually(t, "the first stream is noticed to be gone", func() bool { return s.handler.Stats().Streams == 1 })
}

func TestStreamIsRefused(t *testing.T) {
	s := start(t)
	for _, test := range []struct {
		c      call
		status int
		code   animalstore.Code
	}{
		{call{path: "/v1/events?after=99999"}, 410, "events_expired"},
		{call{path: "/v1/events", header: http.Header{"Last-Event-Id": {"99999"}}}, 410, "events_expired"},
		{call{path: "/v1/events", header: http.Header{"Last-Event-Id": {"latest"}}}, 400, "invalid_parameter"},
		{call{path: "/v1/events?before=5"}, 400, "invalid_parameter"},
	} {
		c := test.c
		c.header = http.Header{"Accept": {"text/event-stream"}}
		for name, values := range test.c.header {
			c.header[name] = values
		}
		c.bad = true
		s.do(t, c).want(t, test.status, test.code)
	}
}

// TestAcceptChooses: a client gets a stream only if it accepts nothing else.
func TestAcceptChooses(t *testing.T) {
	s := start(t)
	for accept, want := range map[string]string{
		"text/event-stream":                         "text/event-stream",
		"Text/Event-Stream, */*":                    "text/event-stream",
		"application/json;q=0.1, text/event-stream": "text/event-stream",
		"":                                    "application/json",
		"application/json, text/event-stream": "application/json",
		"text/event-stream;q=0":               "application/json",
		"text/event-stream;q=0.9, */*":        "application/json",
		"text/html, nonsense;;;, application/x-more": "application/json",
	} {
		res := s.startStream(t, call{path: "/v1/events", header: http.Header{"Accept": {accept}}})
		if got := res.Header.Get("Content-Type"); got != want || res.StatusCode != 200 {
			t.Errorf("Accept: %q: got %d %q, want %q", accept, res.StatusCode, got, want)
		}
		res.Body.Close()
	}
}

// TestStreamComments: a silent stream has comments, which also tell of a position that
// moves on over events that don't match.
func TestStreamComments(t *testing.T) {
	shorten(t, &api.FollowTimes.Comment, 50*time.Millisecond)
	s := start(t)
	st := s.openStream(t, call{path: "/v1/events?after=latest&type=order.*"})
	if _, err := st.block(); err != nil {
		t.Fatal(err)
	}
	before := st.lastID
	s.createPet(t, "Rex")
	for st.lastID == before {
		fields, err := st.block()
		if err != nil {
			t.Fatal(err)
		}
		if _, isComment := fields[""]; !isComment || fields["data"] != "" {
			t.Errorf("got %v, want only comments", fields)
		}
	}
}

// TestStreamEndsWithItsKey: when its key loses what it needs, a stream ends and a waiting
// request gets its response.
func TestStreamEndsWithItsKey(t *testing.T) {
	shorten(t, &api.FollowTimes.KeyCheck, 10*time.Millisecond)
	s := start(t)
	for _, test := range []struct {
		name, method, rest, body string
		later                    time.Duration
	}{
		{"revoked", "DELETE", "", "", 0},
		{"no longer allowed to read", "PATCH", "", `{"permissions":["write"]}`, 0},
		{"no longer an admin", "PATCH", "", `{"permissions":["read"]}`, 0},
		{"suspended", "PATCH", "", `{"suspended":true}`, 0},
		{"kept to a network", "PATCH", "", `{"networks":["203.0.113.0/24"]}`, 0},
		{"its secret replaced", "POST", "/rotate", `{"graceSeconds":0}`, 0},
		{"the grace period of its secret over", "POST", "/rotate", `{"graceSeconds":5}`, 6 * time.Second},
		{"expired", "PATCH", "", `{}`, 20 * time.Second},
	} {
		t.Run(test.name, func(t *testing.T) {
			secret, id := s.with(t, everything, func(k *animalstore.NewKey) { k.ExpiresAt = animalstore.At(s.clock.Now().Add(10 * time.Second)) })
			st := s.openStream(t, call{path: "/v1/events?after=latest", key: secret})
			other := s.openStream(t, call{path: "/v1/events?after=latest&type=pet.*"})
			answered := s.beginWaiting(t, call{path: s.latest(t, secret, "&wait=30&type=order.*"), key: secret})
			if got := s.asAdmin(t, test.method, keyPath(id, test.rest), test.body); got.status >= 300 {
				t.Fatalf("got %v, want it done", got)
			}
			s.clock.Advance(test.later)
			st.awaitEnd()
			if got := <-answered; len(readEventPage(t, got).events) != 0 {
				t.Errorf("got %v, want nothing", got)
			}
			s.createPet(t, "Rex")
			other.next() // goes on
		})
	}
}

// TestTooManyStreams: a key has 10 streams. One more is refused and charged, and is no
// strike. Other keys aren't affected.
func TestTooManyStreams(t *testing.T) {
	s := start(t)
	secret := s.limitedKey(t, 1000, 1000)
	var all []*stream
	for range 10 {
		all = append(all, s.openStream(t, call{path: "/v1/events?after=latest", key: secret}))
	}
	before := s.do(t, call{path: "/v1/limits", key: secret})
	for range 3 {
		got := s.do(t, call{path: "/v1/events?after=latest", key: secret, header: http.Header{"Accept": {"text/event-stream"}}})
		got.want(t, 429, "too_many_streams")
		if got.header.Get("Retry-After") != "5" {
			t.Errorf("got Retry-After %q, want 5", got.header.Get("Retry-After"))
		}
	}
	after := s.do(t, call{path: "/v1/limits", key: secret})
	if got, want := after.limits().remaining, before.limits().remaining-4; got != want {
		t.Errorf("got %d remaining, want %d: each is charged", got, want)
	}
	if !strings.Contains(string(after.body), `"strikes":{"count":0,`) {
		t.Errorf("got %s, want no strikes", after.body)
	}
	s.openStream(t, call{path: "/v1/events?after=latest"})
	s.do(t, call{path: "/v1/events?wait=1", key: secret}).want(t, 200, "")
	all[0].res.Body.Close()
	testenv.Eventually(t, "there is room for another", func() bool { return s.handler.Stats().Streams == 10 })
	s.openStream(t, call{path: "/v1/events?after=latest", key: secret})
}

// TestStreamThatIsNotRead: a client that doesn't read is cut off.
func TestStreamThatIsNotRead(t *testing.T) {
	shorten(t, &api.FollowTimes.Write, 50*time.Millisecond)
	s := start(t)
	pet := animalstore.NewPet{Name: strings.Repeat("\U0001F436", 1000), CategoryID: 7}
	s.add(t, slices.Repeat([]animalstore.NewPet{pet}, 1500)...) // 6 MB of events, more than the system buffers
	conn, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	fmt.Fprintf(conn, "GET /v1/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream\r\n\r\n", s.owner)
	testenv.Eventually(t, "the stream is cut off", func() bool { return s.handler.Stats().CutStreams == 1 })
	testenv.Eventually(t, "the stream has ended", func() bool { return s.handler.Stats().Streams == 0 })
}

// TestDrainEndsFollowers: when the server stops, streams end cleanly and waiting
// requests get a response at once.
func TestDrainEndsFollowers(t *testing.T) {
	s := start(t)
	st := s.openStream(t, call{path: "/v1/events?after=latest"})
	path := s.latest(t, "", "&wait=30")
	answered := s.beginWaiting(t, call{path: path})
	s.handler.Drain()
	st.awaitEnd()
	if got := readEventPage(t, <-answered); len(got.events) != 0 || got.next != path {
		t.Errorf("got %q and %s, want nothing and %s", typesOf(got.events), got.next, path)
	}
	s.do(t, call{path: "/v1/events", header: http.Header{"Accept": {"text/event-stream"}}}).want(t, 503, "shutting_down")
	s.do(t, call{path: path}).want(t, 200, "") // doesn't wait
}

// shorten changes one of the times for a test.
func shorten(t testing.TB, d *time.Duration, to time.Duration) {
	before := *d
	*d = to
	t.Cleanup(func() { *d = before })
}

// TestBanEndsFollowers: a ban ends the streams of a key and its requests that wait, and
// the next request says why. Others go on.
func TestBanEndsFollowers(t *testing.T) {
	shorten(t, &api.FollowTimes.KeyCheck, 10*time.Millisecond)
	s := start(t)
	secret, _ := s.planKey(t, animalstore.PlanFree)
	path := s.latest(t, "", "&wait=30&type=order.*")
	other := s.openStream(t, call{path: "/v1/events?after=latest&type=pet.*"})
	st := s.openStream(t, call{path: "/v1/events?after=latest", key: secret})
	waiting := s.beginWaiting(t, call{path: path, key: secret})
	s.hammer(t, secret).want(t, http.StatusTooManyRequests, animalstore.KeyBanned)
	st.awaitEnd()
	if got := readEventPage(t, <-waiting); len(got.events) != 0 {
		t.Errorf("the request that waited got %q, want nothing", typesOf(got.events))
	}
	s.do(t, call{path: path, key: secret}).want(t, http.StatusTooManyRequests, animalstore.KeyBanned)
	s.createPet(t, "Rex")
	other.next() // goes on
}
