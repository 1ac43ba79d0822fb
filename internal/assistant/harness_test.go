package assistant_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/api"
	"animalstore/internal/assistant"
	"animalstore/internal/server"
	"animalstore/internal/server/servertest"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

const everything = animalstore.Read | animalstore.Write | animalstore.Admin

// store is a server that keeps its log.
type store struct {
	*servertest.Store

	mu  sync.Mutex
	log bytes.Buffer
}

func start(t *testing.T, change ...func(*server.Config)) *store {
	t.Helper()
	s := &store{}
	s.Store = servertest.Start(t, http.DefaultTransport.(*http.Transport), append([]func(*server.Config){func(c *server.Config) {
		c.Version, c.AccessLog = "1.2.3", true
		c.Log = slog.New(slog.NewTextHandler(s, &slog.HandlerOptions{Level: slog.LevelDebug}))
	}}, change...)...)
	return s
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

func (s *store) changeKey(id int64, change func(*animalstore.Key)) {
	s.T.Helper()
	_, err := s.DB.UpdateKey(s.T.Context(), id, animalstore.At(s.Now()), func(k *animalstore.Key, _ bool) error {
		change(k)
		return nil
	})
	if err != nil {
		s.T.Fatal(err)
	}
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
	s.T.Helper()
	return connect(s.T, &mcp.StreamableClientTransport{Endpoint: s.URL + "/mcp",
		HTTPClient: &http.Client{Transport: bearer(key)}, MaxRetries: -1})
}

// overPipes connects as to the command animalstore mcp.
func (s *store) overPipes(key string) *session {
	s.T.Helper()
	c, err := client.New(s.URL, key, client.WithMaxWait(0))
	if err != nil {
		s.T.Fatal(err)
	}
	limits, err := c.GetLimits(s.T.Context())
	if err != nil {
		s.T.Fatal(err)
	}
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		tools := assistant.New("1.2.3", slog.New(slog.DiscardHandler))
		caller := &assistant.Caller{API: c, Allowed: api.MayCall(limits.Permissions)}
		ended <- tools.Serve(context.Background(), in, out, caller)
	}()
	s.T.Cleanup(func() {
		toServer.Close()
		if err := <-ended; err != nil {
			s.T.Errorf("serve an assistant: %v", err)
		}
		c.CloseIdleConnections()
	})
	return connect(s.T, &mcp.IOTransport{Reader: fromServer, Writer: toServer})
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

// matches returns an error unless a value matches a schema, which must be valid in both
// drafts that assistants use: an enum with duplicates is valid only in the newer one.
func matches(t *testing.T, schema any, value []byte) error {
	t.Helper()
	encoded, err := json.Marshal(schema)
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(encoded))
	if err != nil {
		t.Fatal(err)
	}
	instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		t.Fatal(err)
	}
	for _, draft := range []*jsonschema.Draft{jsonschema.Draft7, jsonschema.Draft2020} {
		compiler := jsonschema.NewCompiler()
		compiler.DefaultDraft(draft)
		compiler.AssertFormat()
		if err := compiler.AddResource("schema.json", doc); err != nil {
			t.Fatal(err)
		}
		compiled, err := compiler.Compile("schema.json")
		if err != nil {
			t.Fatal(err)
		}
		if err := compiled.Validate(instance); err != nil {
			return err
		}
	}
	return nil
}

// post sends a message to /mcp. The header names and values alternate.
func (s *store) post(key, message string, header ...string) *http.Response {
	s.T.Helper()
	return s.send(http.MethodPost, key, message, header...)
}

func (s *store) send(method, key, message string, header ...string) *http.Response {
	s.T.Helper()
	r, err := http.NewRequestWithContext(s.T.Context(), method, s.URL+"/mcp", strings.NewReader(message))
	if err != nil {
		s.T.Fatal(err)
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
		s.T.Fatal(err)
	}
	s.T.Cleanup(func() { res.Body.Close() })
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
