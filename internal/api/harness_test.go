package api_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/api"
	"animalstore/internal/db"
	"animalstore/internal/keys"
	"animalstore/internal/server"
	"animalstore/internal/testenv"
)

const (
	readWrite  = animalstore.Read | animalstore.Write
	everything = readWrite | animalstore.Admin
	noKey      = "-" // as the key of a call: send no Authorization header
)

// service is a server on a separate database. Its clock stands still until a test
// moves it.
type service struct {
	url      string
	addr     string
	database string // its URL
	env      animalstore.Environment
	db       *faultyDB
	clock    *testenv.Clock
	log      *logBuffer
	server   *server.Server
	handler  *api.Server
	owner    string // a key that may read and write
	admin    string // a key that may do everything, the only one that manages keys
	client   *http.Client
}

type setup struct {
	env       animalstore.Environment
	origins   []string
	proxies   []netip.Prefix
	accessLog bool

	securityContact string
	wrap            func(*faultyDB) db.DB // what the server gets as its database
	observer        api.Observer

	eventsEvery    time.Duration
	requestTimeout time.Duration
	photosLimit    int64
}

// start runs a server until the test ends.
func start(t testing.TB, change ...func(*setup)) *service {
	t.Helper()
	with := setup{env: animalstore.Production, requestTimeout: testenv.Deadline}
	for _, f := range change {
		f(&with)
	}
	s := &service{
		database: engine.newDatabase(t),
		env:      with.env,
		clock:    testenv.NewClock(),
		log:      &logBuffer{},
	}
	var err error
	s.server, err = server.New(t.Context(), server.Config{
		Settings: api.Settings{
			Environment:     with.env,
			Log:             slog.New(slog.NewTextHandler(s.log, nil)),
			TrustedProxies:  with.proxies,
			CORSOrigins:     with.origins,
			AccessLog:       with.accessLog,
			SecurityContact: with.securityContact,
			PhotosLimit:     with.photosLimit,
		},
		Database:   s.database,
		Listen:     "127.0.0.1:0",
		Timeouts:   server.Timeouts{Drain: testenv.Deadline},
		NoFastPath: !fastPath,
		Hooks: server.Hooks{
			Now:      s.clock.Now,
			Observer: with.observer,
			WrapDB: func(store db.DB) db.DB {
				s.db = &faultyDB{DB: store}
				if with.wrap != nil {
					return with.wrap(s.db)
				}
				return s.db
			},
			NoBackground:    true,
			NoSync:          true,
			RequestTimeout:  with.requestTimeout,
			PostgresTimeout: testenv.Deadline,
			EventsEvery:     with.eventsEvery,
			CheckWebhookURL: checkWebhookURL,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.handler, s.url = s.server.Handler(), s.server.URL()
	s.addr = strings.TrimPrefix(s.url, "http://")
	s.run(t)
	transport := &http.Transport{
		DisableCompression:    true,
		MaxIdleConnsPerHost:   32,
		ExpectContinueTimeout: testenv.Deadline,
	}
	t.Cleanup(transport.CloseIdleConnections)
	s.client = checkingClient(transport, s.clock.Now)
	s.owner = s.key(t, readWrite)
	s.admin = s.key(t, everything)
	return s
}

// run serves in the background until the test ends.
func (s *service) run(t testing.TB) {
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.server.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := errors.Join(<-done, s.server.Close()); err != nil {
			t.Errorf("stop the server: %v", err)
		}
	})
}

// checkingClient never follows a redirect: there must be none.
func checkingClient(base http.RoundTripper, now func() time.Time) *http.Client {
	return &http.Client{
		Transport:     &checkingTransport{base, now},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// inProcess calls the handler directly, without a network.
func (s *service) inProcess() *service {
	direct := *s
	direct.client = checkingClient(handlerTransport{s.handler}, s.clock.Now)
	return &direct
}

// remoteAddr is the context key of the address that a request comes from.
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
	io.Copy(io.Discard, in.Body) // the client has sent what the server left unread
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

// key creates a key with these permissions and returns its secret.
func (s *service) key(t testing.TB, permissions animalstore.Permissions) string {
	t.Helper()
	secret, _ := s.makeKey(t, keys.Mint(s.env), func(k *animalstore.NewKey) { k.Permissions = permissions })
	return secret
}

// limitedKey creates a key with the given limits.
func (s *service) limitedKey(t testing.TB, perMinute, perDay int64) string {
	t.Helper()
	secret, _ := s.makeKey(t, keys.Mint(s.env), func(k *animalstore.NewKey) {
		k.Limits = animalstore.Limits{PerMinute: perMinute, PerDay: perDay}
		k.Permissions = everything
	})
	return secret
}

// revoke revokes a key.
func (s *service) revoke(t testing.TB, id int64) (animalstore.Key, error) {
	t.Helper()
	now := animalstore.At(s.clock.Now())
	return s.db.UpdateKey(t.Context(), id, now, func(k *animalstore.Key, _ bool) error {
		k.Revoke(now)
		return nil
	})
}

// makeKey creates a key with the given secret. The test may change it first.
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
	path   string // with its query, sent as is
	key    string // "": the owner's; noKey: none
	header http.Header
	body   string
	stream io.Reader // a body of unknown length, instead of body
	from   string    // the peer's address and port, where the call is in process
	bad    bool      // breaks the document on purpose: only the response must keep to it
}

// reads reports whether the call changes nothing.
func (c call) reads() bool { return c.method == "" || c.method == http.MethodGet }

type response struct {
	status int
	header http.Header
	body   []byte
}

// do sends a request and returns the response, which is held to the document.
func (s *service) do(t testing.TB, c call) response {
	t.Helper()
	got, err := s.send(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// send is do for other goroutines, which may not stop the test.
func (s *service) send(ctx context.Context, c call) (response, error) {
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
		return response{}, err
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
		return response{}, err
	}
	defer res.Body.Close()
	content, err := io.ReadAll(res.Body)
	return response{res.StatusCode, res.Header, content}, err
}

// code is the code of an error, or "".
func (a response) code() animalstore.Code {
	var e struct{ Code animalstore.Code }
	json.Unmarshal(a.body, &e) // anything but an error has no code
	return e.Code
}

func (a response) String() string { return fmt.Sprintf("%d %s", a.status, a.body) }

// want fails the test unless the response has this status and code ("": none).
func (a response) want(t testing.TB, status int, code animalstore.Code) {
	t.Helper()
	if got := a.code(); a.status != status || got != code && len(a.body) > 0 {
		t.Errorf("got %v\nwant %d %s", a, status, code)
	}
}

// wantMessage fails the test unless the error's message has all parts in it.
func (a response) wantMessage(t testing.TB, parts ...string) {
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
func (a response) pets(t testing.TB) []animalstore.Pet {
	t.Helper()
	return read[[]animalstore.Pet](t, a, http.StatusOK)
}

// add creates pets and returns them, oldest first.
func (s *service) add(t testing.TB, pets ...animalstore.NewPet) []animalstore.Pet {
	t.Helper()
	var added []animalstore.Pet
	for batch := range slices.Chunk(pets, animalstore.MaxPetBatch) {
		created, _, err := s.db.CreatePets(t.Context(), batch, nil)
		if err != nil {
			t.Fatal(err)
		}
		added = append(added, created...)
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

// logBuffer collects the log of a server.
type logBuffer struct{ testenv.Buffer }

// lines returns the lines that contain all of these parts.
func (b *logBuffer) lines(parts ...string) (found []string) {
	for line := range strings.Lines(b.String()) {
		if !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(line, part) }) {
			found = append(found, line)
		}
	}
	return found
}
