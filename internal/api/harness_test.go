package api_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/api"
	"animalstore/internal/db"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/http1"
	"animalstore/internal/keys"
	"animalstore/internal/ratelimit"
)

const (
	readWrite  = animalstore.Read | animalstore.Write
	everything = readWrite | animalstore.Admin
	noKey      = "-" // as the key of a call: send no Authorization header
)

// service is a server on a database of its own. Its clock stands still until a
// test moves it.
type service struct {
	url     string
	addr    string
	file    string // the database
	env     animalstore.Environment
	db      *faultyDB
	clock   *clock
	log     *logBuffer
	handler *api.Server
	limiter *ratelimit.Memory
	usage   *ratelimit.Usage
	owner   string // a key that may read and write
	admin   string // a key that may do everything, the only one that manages keys
	client  *http.Client
}

type setup struct {
	env       animalstore.Environment
	origins   []string
	proxies   []netip.Prefix
	accessLog bool
	echo      bool // keep new pets off the disk
	observer  api.Observer
}

func start(t testing.TB, change ...func(*setup)) *service {
	t.Helper()
	with := setup{env: animalstore.Production}
	for _, f := range change {
		f(&with)
	}
	file := filepath.Join(t.TempDir(), "store.db")
	store, err := sqlite.Open(t.Context(), file, sqlite.Options{Serve: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Errorf("close database: %v", err)
		}
	})
	s := &service{
		file:  file,
		env:   with.env,
		db:    &faultyDB{DB: store},
		clock: &clock{now: time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)},
		log:   &logBuffer{},
	}
	log := slog.New(slog.NewTextHandler(s.log, nil))
	var used db.DB = s.db
	if with.echo {
		used = echoDB{s.db}
	}
	s.limiter = ratelimit.NewMemory(s.db, s.clock.Now, log)
	s.usage = ratelimit.NewUsage(s.db, s.clock.Now, log)
	s.handler = api.New(api.Config{
		DB:             used,
		Keys:           keys.NewChecker(with.env, s.db, log, s.clock.Now),
		Limiter:        s.limiter,
		Usage:          s.usage,
		Log:            log,
		TrustedProxies: with.proxies,
		Now:            s.clock.Now,
		CORSOrigins:    with.origins,
		AccessLog:      with.accessLog,
		Observer:       with.observer,
	})
	s.addr = serve(t, s.handler)
	s.url = "http://" + s.addr
	transport := &http.Transport{
		DisableCompression:    true,
		MaxIdleConnsPerHost:   32,
		ExpectContinueTimeout: time.Minute,
	}
	t.Cleanup(transport.CloseIdleConnections)
	s.client = checkingClient(transport, s.clock.Now)
	s.owner = s.key(t, readWrite)
	s.admin = s.key(t, everything)
	return s
}

// serve serves on a port of its own, as the program does, until the test ends.
func serve(t testing.TB, handler http.Handler) (addr string) {
	t.Helper()
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: time.Minute,
		IdleTimeout:       time.Minute,
		WriteTimeout:      time.Minute,
		ErrorLog:          slog.NewLogLogger(slog.DiscardHandler, slog.LevelError),
	}
	l := http1.Listen(tcp, server, api.Plain, slog.New(slog.DiscardHandler))
	go server.Serve(l)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := l.Shutdown(ctx); err != nil {
			t.Errorf("shut down: %v", err)
		}
	})
	return tcp.Addr().String()
}

// checkingClient never follows a redirect: there must be none.
func checkingClient(base http.RoundTripper, now func() time.Time) *http.Client {
	return &http.Client{
		Transport:     &checkingTransport{base, now},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// inProcess answers requests by the handler itself, without a network between.
func (s *service) inProcess() *service {
	direct := *s
	direct.client = checkingClient(handlerTransport{s.handler}, s.clock.Now)
	return &direct
}

// remoteAddr marks, in a request's context, where it comes from.
type remoteAddr struct{}

type handlerTransport struct{ http.Handler }

func (h handlerTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	in := r.Clone(r.Context())
	in.RequestURI = r.URL.RequestURI()
	in.RemoteAddr, _ = r.Context().Value(remoteAddr{}).(string)
	if in.Body == nil {
		in.Body = http.NoBody
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, in)
	io.Copy(io.Discard, in.Body) // what the server left unread was sent all the same
	res := w.Result()
	if err := wireSpelling(r.URL.Path, res.Header); err != nil {
		return nil, err
	}
	for name, values := range res.Header { // as a client reads them off the wire
		delete(res.Header, name)
		res.Header[http.CanonicalHeaderKey(name)] = values
	}
	if r.Method == http.MethodHead {
		res.Body = http.NoBody
	}
	return res, nil
}

// key makes a key with these permissions and returns its secret.
func (s *service) key(t testing.TB, permissions animalstore.Permissions) string {
	t.Helper()
	secret, _ := s.makeKey(t, keys.Mint(s.env), func(k *animalstore.NewKey) { k.Permissions = permissions })
	return secret
}

// limitedKey makes a key that may make so many requests a minute and a day.
func (s *service) limitedKey(t testing.TB, perMinute, perDay int64) string {
	t.Helper()
	secret, _ := s.makeKey(t, keys.Mint(s.env), func(k *animalstore.NewKey) {
		k.Limits = animalstore.Limits{PerMinute: perMinute, PerDay: perDay}
		k.Permissions = everything
	})
	return secret
}

// revoke withdraws a key.
func (s *service) revoke(t testing.TB, id int64) (animalstore.Key, error) {
	t.Helper()
	now := animalstore.At(s.clock.Now())
	return s.db.UpdateKey(t.Context(), id, now, func(k *animalstore.Key, _ bool) error {
		k.Revoke(now)
		return nil
	})
}

// makeKey stores a key under a secret, changed from the usual as a test likes.
func (s *service) makeKey(t testing.TB, secret string, change ...func(*animalstore.NewKey)) (string, int64) {
	t.Helper()
	k := animalstore.NewKey{Name: t.Name(), Plan: animalstore.PlanEnterprise, Limits: animalstore.Limits{PerMinute: 1 << 40, PerDay: 1 << 40}, Permissions: readWrite, Environment: s.env}
	if len(k.Name) > animalstore.MaxKeyNameLength {
		k.Name = k.Name[:animalstore.MaxKeyNameLength]
	}
	for _, f := range change {
		f(&k)
	}
	if err := k.Validate(); err != nil {
		t.Fatal(err)
	}
	key, err := s.db.CreateKey(t.Context(), k, keys.Hash(secret), animalstore.At(s.clock.Now()))
	if err != nil {
		t.Fatal(err)
	}
	return secret, key.ID
}

// call is a request.
type call struct {
	method string // "": GET
	path   string // with its query, as it stands
	key    string // "": the owner's; noKey: none
	header http.Header
	body   string
	stream io.Reader // a body of unknown length, instead of body
	from   string    // the peer's address and port, where the call is in process
	bad    bool      // breaks the document on purpose: only the answer must keep to it
}

// reads reports whether the call changes nothing.
func (c call) reads() bool { return c.method == "" || c.method == http.MethodGet }

type answer struct {
	status int
	header http.Header
	body   []byte
}

// do sends a request and returns the answer, which is held to the document.
func (s *service) do(t testing.TB, c call) answer {
	t.Helper()
	got, err := s.send(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// send is do for any goroutine: only a test's own may stop it.
func (s *service) send(ctx context.Context, c call) (answer, error) {
	if c.bad {
		ctx = context.WithValue(ctx, badRequest{}, true)
	}
	if c.from != "" {
		ctx = context.WithValue(ctx, remoteAddr{}, c.from)
	}
	var body io.Reader
	switch {
	case c.stream != nil:
		body = c.stream
	case c.body != "":
		body = strings.NewReader(c.body)
	}
	req, err := http.NewRequestWithContext(ctx, c.method, s.url+c.path, body)
	if err != nil {
		return answer{}, err
	}
	if c.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	switch c.key {
	case "":
		req.Header.Set("Authorization", "Bearer "+s.owner)
	case noKey:
	default:
		req.Header.Set("Authorization", "Bearer "+c.key)
	}
	for name, values := range c.header {
		req.Header[name] = values
	}
	res, err := s.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	content, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, content}, err
}

// code is the code of an error, or "".
func (a answer) code() animalstore.Code {
	var e struct{ Code animalstore.Code }
	json.Unmarshal(a.body, &e) // what is no error has no code
	return e.Code
}

func (a answer) String() string { return fmt.Sprintf("%d %s", a.status, a.body) }

// want fails the test unless the answer has this status and code ("": none).
func (a answer) want(t testing.TB, status int, code animalstore.Code) {
	t.Helper()
	if got := a.code(); a.status != status || got != code && len(a.body) > 0 {
		t.Errorf("got %v\nwant %d %s", a, status, code)
	}
}

// wantMessage fails the test unless the error's message has all parts in it.
func (a answer) wantMessage(t testing.TB, parts ...string) {
	t.Helper()
	var e struct{ Message string }
	if err := json.Unmarshal(a.body, &e); err != nil {
		t.Fatalf("got %v, want an error", a)
	}
	for _, part := range parts {
		if !strings.Contains(e.Message, part) {
			t.Errorf("got message %q, want %q in it", e.Message, part)
		}
	}
}

// pets decodes a page of pets.
func (a answer) pets(t testing.TB) []animalstore.Pet {
	t.Helper()
	var pets []animalstore.Pet
	if err := json.Unmarshal(a.body, &pets); err != nil || a.status != http.StatusOK {
		t.Fatalf("got %v, want a page of pets (%v)", a, err)
	}
	return pets
}

// add puts pets into the store and returns them, oldest first.
func (s *service) add(t testing.TB, pets ...animalstore.NewPet) []animalstore.Pet {
	t.Helper()
	var added []animalstore.Pet
	for _, in := range pets {
		pet, _, err := s.db.CreatePet(t.Context(), in, nil)
		if err != nil {
			t.Fatal(err)
		}
		added = append(added, pet)
	}
	return added
}

func ids(pets []animalstore.Pet) []int64 {
	all := []int64{}
	for _, p := range pets {
		all = append(all, p.ID)
	}
	return all
}

// clock is a clock that tests move.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) set(t time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = t
}

func (c *clock) advance(d time.Duration) { c.set(c.Now().Add(d)) }

// logBuffer keeps what a server logs.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// lines are the lines with all of these parts.
func (b *logBuffer) lines(parts ...string) (found []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for line := range strings.Lines(b.text.String()) {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			found = append(found, line)
		}
	}
	return found
}
