package assistant_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/assistant"
	"animalstore/internal/db"
	"animalstore/internal/keys"
	"animalstore/internal/photo"
	"animalstore/internal/photo/phototest"
	"animalstore/internal/server"
	"animalstore/internal/testenv"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const everything = animalstore.Read | animalstore.Write | animalstore.Admin

// store is a server with a clock that tests move.
type store struct {
	t      *testing.T
	url    string
	db     db.DB
	server *server.Server

	mu  sync.Mutex
	now time.Time
	log bytes.Buffer
}

func start(t *testing.T, change ...func(*server.Config)) *store {
	t.Helper()
	s := &store{t: t, now: time.Date(2026, 11, 15, 12, 0, 0, 0, time.UTC)}
	cfg := server.Config{
		Database: "sqlite:" + filepath.Join(t.TempDir(), "store.db"), Listen: "127.0.0.1:0", Version: "1.2.3",
		Log: slog.New(slog.NewTextHandler(s, &slog.HandlerOptions{Level: slog.LevelDebug})), AccessLog: true,
		Timeouts: server.Timeouts{Drain: testenv.Deadline},
		Hooks:    server.Hooks{Now: s.clock, NoBackground: true, NoSync: true, RequestTimeout: testenv.Deadline},
	}
	for _, f := range change {
		f(&cfg)
	}
	running, err := server.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	s.url, s.db, s.server = running.URL(), running.DB(), running
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- running.Run(ctx) }()
	t.Cleanup(func() {
		http.DefaultTransport.(*http.Transport).CloseIdleConnections() // also those that were never used, which the server waits for
		stop()
		if err := <-done; err != nil {
			t.Errorf("stop the server: %v", err)
		}
	})
	return s
}

func (s *store) clock() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

func (s *store) advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = s.now.Add(d)
}

// Write keeps the log.
func (s *store) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(line)
}

func (s *store) logged() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.String()
}

// key creates a key and returns its secret and id.
func (s *store) key(permissions animalstore.Permissions, perMinute int64) (secret string, id int64) {
	s.t.Helper()
	secret = keys.Mint(animalstore.Production)
	key, err := s.db.CreateKey(s.t.Context(), animalstore.NewKey{
		Name: "assistant", Plan: animalstore.PlanEnterprise, Limits: animalstore.Limits{PerMinute: perMinute, PerDay: 1 << 30},
		Permissions: permissions, Environment: animalstore.Production,
	}, keys.Hash(secret), animalstore.At(s.clock()))
	if err != nil {
		s.t.Fatal(err)
	}
	return secret, key.ID
}

func (s *store) changeKey(id int64, change func(*animalstore.Key)) {
	s.t.Helper()
	_, err := s.db.UpdateKey(s.t.Context(), id, animalstore.At(s.clock()), func(k *animalstore.Key, _ bool) error {
		change(k)
		return nil
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

func (s *store) pet(name string, category int64) animalstore.Pet {
	s.t.Helper()
	pet, _, err := s.db.CreatePet(s.t.Context(), animalstore.NewPet{Name: name, CategoryID: category}, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return pet
}

// photo adds a photo to a pet.
func (s *store) photo(petID int64) animalstore.Photo {
	s.t.Helper()
	picture := photo.FromImage(phototest.Drawing(64, 48))
	added, _, err := s.db.AddPhoto(s.t.Context(), db.NewPhoto{
		PetID: petID, ContentType: picture.ContentType, Width: picture.Width, Height: picture.Height,
		Image: picture.Image, Thumbnail: picture.Thumbnail, At: animalstore.At(s.clock()),
	}, 1<<30, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	return added
}

// bearer sends requests with a key.
type bearer string

func (key bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(key))
	return http.DefaultTransport.RoundTrip(r)
}

// session is an assistant that is connected.
type session struct {
	*mcp.ClientSession
	t *testing.T
}

func connect(t *testing.T, transport mcp.Transport) *session {
	t.Helper()
	s, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), transport, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return &session{s, t}
}

// overHTTP connects to /mcp with a key.
func (s *store) overHTTP(key string) *session {
	s.t.Helper()
	return connect(s.t, &mcp.StreamableClientTransport{Endpoint: s.url + "/mcp", HTTPClient: &http.Client{Transport: bearer(key)}, MaxRetries: -1})
}

// overPipes connects as to the command animalstore mcp.
func (s *store) overPipes(key string) *session {
	s.t.Helper()
	api, err := client.New(s.url, key, client.WithMaxWait(0))
	if err != nil {
		s.t.Fatal(err)
	}
	lists, err := assistant.Listed(s.t.Context(), http.DefaultClient, api.BaseURL(), key)
	if err != nil {
		s.t.Fatal(err)
	}
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		tools := assistant.New("1.2.3", slog.New(slog.DiscardHandler))
		ended <- tools.Serve(context.Background(), in, out, &assistant.Caller{API: api, Lists: lists})
	}()
	s.t.Cleanup(func() {
		toServer.Close()
		if err := <-ended; err != nil {
			s.t.Errorf("serve an assistant: %v", err)
		}
		api.CloseIdleConnections()
	})
	return connect(s.t, &mcp.IOTransport{Reader: fromServer, Writer: toServer})
}

// tools are the tools that are listed, by name.
func (s *session) tools() map[string]*mcp.Tool {
	s.t.Helper()
	list, err := s.ListTools(s.t.Context(), nil)
	if err != nil {
		s.t.Fatal(err)
	}
	tools := map[string]*mcp.Tool{}
	for _, tool := range list.Tools {
		tools[tool.Name] = tool
	}
	return tools
}

// call calls a tool, whose arguments are JSON.
func (s *session) call(tool, arguments string) *mcp.CallToolResult {
	s.t.Helper()
	result, err := s.CallTool(s.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: json.RawMessage(arguments)})
	if err != nil {
		s.t.Fatalf("%s %s: %v", tool, arguments, err)
	}
	return result
}

func text(result *mcp.CallToolResult) string {
	if len(result.Content) > 0 {
		if text, ok := result.Content[0].(*mcp.TextContent); ok {
			return text.Text
		}
	}
	return ""
}

// get calls a tool that succeeds, and reads its result into v.
func (s *session) get(tool, arguments string, v any) {
	s.t.Helper()
	result := s.call(tool, arguments)
	if result.IsError {
		s.t.Fatalf("%s %s: got the error %s, want a result", tool, arguments, text(result))
	}
	if err := json.Unmarshal([]byte(text(result)), v); err != nil {
		s.t.Fatalf("%s %s: %v", tool, arguments, err)
	}
}

// refusal is a tool error.
type refusal struct {
	Code       animalstore.Code
	Message    string
	Status     int
	RetryAfter int `json:"retryAfterSeconds"`
}

// refused returns the error of a result, whose code is "" if there is none.
func refused(t *testing.T, result *mcp.CallToolResult) (r refusal) {
	t.Helper()
	if !result.IsError {
		return r
	}
	if err := json.Unmarshal([]byte(text(result)), &r); err != nil {
		t.Fatalf("the error %q: %v", text(result), err)
	}
	if result.StructuredContent != nil {
		t.Errorf("got an error with the structured content %v, want none: it wouldn't match the schema", result.StructuredContent)
	}
	return r
}

func (s *session) wantRefused(tool, arguments string, code animalstore.Code) refusal {
	s.t.Helper()
	r := refused(s.t, s.call(tool, arguments))
	if r.Code != code || r.Message == "" {
		s.t.Errorf("%s %s: got %+v, want the code %s and a message", tool, arguments, r, code)
	}
	return r
}

// matches returns an error unless a value matches a schema.
func matches(t *testing.T, schema any, value []byte) error {
	t.Helper()
	compiled, err := compile(t, schema, jsonschema.Draft2020)
	if err != nil {
		t.Fatal(err)
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		t.Fatal(err)
	}
	return compiled.Validate(instance)
}

// compile returns an error unless a schema is valid in a draft.
func compile(t *testing.T, schema any, draft *jsonschema.Draft) (*jsonschema.Schema, error) {
	t.Helper()
	encoded, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
	if err != nil {
		t.Fatal(err)
	}
	compiler := jsonschema.NewCompiler()
	compiler.DefaultDraft(draft)
	compiler.AssertFormat()
	if err := compiler.AddResource("schema.json", doc); err != nil {
		t.Fatal(err)
	}
	return compiler.Compile("schema.json")
}

// post sends a message to /mcp. The header names and values alternate.
func (s *store) post(key, message string, header ...string) *http.Response {
	s.t.Helper()
	return s.send(http.MethodPost, key, message, header...)
}

func (s *store) send(method, key, message string, header ...string) *http.Response {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+"/mcp", strings.NewReader(message))
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i < len(header); i += 2 {
		if r.Header.Set(header[i], header[i+1]); header[i] == "Host" {
			r.Host = header[i+1]
		}
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { res.Body.Close() })
	return res
}

func read(t *testing.T, res *http.Response) string {
	t.Helper()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}
