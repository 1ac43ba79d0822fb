package assistant_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"animalstore"
	"animalstore/internal/assistant"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const listTools = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`

func callOf(tool, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, arguments)
}

// TestRefusedRequests are requests that never reach a tool.
func TestRefusedRequests(t *testing.T) {
	s := start(t)
	key, _ := s.Key("assistant", everything, 1<<30)
	for _, test := range []struct {
		name, method, message string
		header                []string
		status                int
		body                  string // a part of it
	}{
		{"GET", "GET", "", nil, 405, `"method_not_allowed"`},
		{"HEAD", "HEAD", "", nil, 405, ""},
		{"batch", "POST", " [" + listTools + "]", nil, 400, "batches are not supported"},
		{"batch of the version that had them", "POST", "[" + listTools + "]", []string{"Mcp-Protocol-Version", "2025-03-26"}, 400, "batches are not supported"},
		{"no JSON", "POST", "{", nil, 400, `"jsonrpc":"2.0"`},
		{"empty", "POST", "", nil, 400, `"jsonrpc":"2.0"`},
		{"unknown method", "POST", `{"jsonrpc":"2.0","id":1,"method":"keys/list"}`, nil, 400, `"code":-32601`},
		{"unknown version", "POST", listTools, []string{"Mcp-Protocol-Version", "2020-01-01"}, 400, "nsupported protocol version"},
		{"another type", "POST", listTools, []string{"Content-Type", "text/plain"}, 415, `"unsupported_media_type"`},
		{"compressed", "POST", listTools, []string{"Content-Encoding", "gzip"}, 415, `"unsupported_media_type"`},
		{"no event streams", "POST", listTools, []string{"Accept", "application/json"}, 400, "Accept"},
		{"too large", "POST", `{"x":"` + strings.Repeat("x", 1<<20) + `"}`, nil, 413, `"payload_too_large"`},
		{"a page of another origin", "POST", listTools, []string{"Origin", "https://evil.example"}, 403, "other origins"},
		{"a page of another site", "POST", listTools, []string{"Sec-Fetch-Site", "cross-site"}, 403, "other origins"},
		{"a page of ours", "POST", listTools, []string{"Origin", s.URL}, 200, `"find_pets"`},
		{"another host, as behind a proxy", "POST", listTools, []string{"Host", "pets.example"}, 200, `"find_pets"`},
	} {
		res := s.send(test.method, key, test.message, test.header...)
		body := read(t, res)
		if res.StatusCode != test.status || !strings.Contains(body, test.body) {
			t.Errorf("%s: got %d %s, want %d %s", test.name, res.StatusCode, body, test.status, test.body)
		}
		if test.status == 405 && res.Header.Get("Allow") != "POST" {
			t.Errorf("%s: got Allow %q, want POST", test.name, res.Header.Get("Allow"))
		}
		if got := res.Header.Get("Content-Type"); got != "application/json" {
			t.Errorf("%s: got the type %q, want JSON", test.name, got)
		}
		if strings.Contains(body, "error") && test.method != "HEAD" && !json.Valid([]byte(body)) {
			t.Errorf("%s: got %q, want JSON", test.name, body)
		}
	}
}

// repeated is n times what item makes of a number, separated by commas.
func repeated(n int, item func(i int) string) string {
	items := make([]string, n)
	for i := range items {
		items[i] = item(i)
	}
	return strings.Join(items, ",")
}

// TestMessages: what isn't exactly one message within bounds gets an error, and nothing of
// it is done.
func TestMessages(t *testing.T) {
	s := start(t)
	key, _ := s.Key("assistant", everything, 1<<30)
	ping := func(params string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"ping","params":{` + params + `}}`
	}
	members := func(n int) string { return repeated(n, func(i int) string { return fmt.Sprintf(`"%d":0`, i) }) }
	entries := func(n int) string { return `"x":[[` + repeated(n-1, func(int) string { return "0" }) + "]]" }
	identified := func(id string) string { return `{"jsonrpc":"2.0","method":"ping","id":` + id + `}` }
	const notJSON, notMessage = -32700, -32600
	for _, test := range []struct {
		name, message string
		code          int
	}{
		{"1,001 members", ping(members(997)), notJSON},
		{"10,001 entries", ping(entries(10_001)), notJSON},
		{"a second message", callOf("add_pet", `{"name":"Rex","categoryId":7}`) + ping(""), notJSON},
		{"duplicate methods", `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}`, notJSON},
		{"duplicate arguments", callOf("add_pet", `{"name":"Rex","categoryId":7,"name":"Max"}`), notJSON},
		{"no UTF-8", ping("\"x\":\"\xff\""), notJSON},
		{"no object", "null", notJSON},
		{"a fraction as id", identified("1.5"), notMessage},
		{"an id that isn't exact in every language", identified("9007199254740993"), notMessage},
		{"null as id", identified("null"), notMessage},
		{"an object as id", identified("{}"), notMessage},
		{"another spelling of method", `{"jsonrpc":"2.0","id":1,"METHOD":"ping"}`, notMessage},
		{"a number as method", `{"jsonrpc":"2.0","id":1,"method":1}`, notMessage},
		{"another version", `{"jsonrpc":"1.0","id":1,"method":"ping"}`, notMessage},
		{"a request and a response", `{"jsonrpc":"2.0","id":1,"method":"ping","result":{}}`, notMessage},
	} {
		res := s.post(key, test.message)
		if body, want := read(t, res), fmt.Sprintf(`"id":null,"error":{"code":%d,`, test.code); res.StatusCode != 400 || !strings.Contains(body, want) {
			t.Errorf("%s: got %d %.200s, want 400 %s", test.name, res.StatusCode, body, want)
		}
	}
	for id, message := range map[string]string{
		"1": ping(members(995) + "," + entries(10_000)), "-9007199254740991": identified("-9007199254740991"), `"1.5"`: identified(`"1.5"`), "100": identified("1e2"),
	} {
		res := s.post(key, message)
		if body := read(t, res); res.StatusCode != 200 || !strings.Contains(body, `"id":`+id+`,"result":{`) {
			t.Errorf("the id %s: got %d %.200s, want 200 and a result", id, res.StatusCode, body)
		}
	}
	if res := s.post(key, `{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}`); res.StatusCode != 202 {
		t.Errorf("a response: got %d %s, want 202", res.StatusCode, read(t, res))
	}
	if pets, err := s.DB.CountPets(t.Context(), nil); err != nil || pets.Available != 0 {
		t.Errorf("got %+v, %v, want no pet", pets, err)
	}
}

// TestMessagesOverPipes: a message that isn't valid gets an error too, and the next one is
// served. What isn't JSON ends the session.
func TestMessagesOverPipes(t *testing.T) {
	const ping = `{"jsonrpc":"2.0","id":"the last","method":"ping"}`
	lines := []string{
		`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, `{"jsonrpc":"2.0","id":1,"METHOD":"ping"}`, "[" + ping + "]", "",
		`{"jsonrpc":"2.0","id":1,"method":"ping","id":2}`, `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"x":[` + strings.Repeat("0,", 10_000) + `0]}}`, ping,
	}
	serve := func(in io.ReadCloser, out io.WriteCloser) error {
		return assistant.New("1.2.3", slog.New(slog.DiscardHandler)).Serve(t.Context(), in, out, &assistant.Caller{})
	}
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- serve(in, out) }()
	go io.WriteString(toServer, strings.Join(lines, "\n")+"\n")
	responses := bufio.NewScanner(fromServer)
	for _, want := range append(slices.Repeat([]string{`"id":null,"error":{"code":-32`}, 5), `"id":"the last","result":{`) {
		if responses.Scan(); !strings.Contains(responses.Text(), want) {
			t.Errorf("got %s, want %s", responses.Text(), want)
		}
	}
	toServer.Close()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	for _, input := range []string{"help\n", ping + ping + "\n", ping[:20], `{"x":"` + strings.Repeat("x", 1<<20) + `"}`} {
		var out pipe
		if err := serve(io.NopCloser(strings.NewReader(input)), &out); err == nil || out.Len() > 0 {
			t.Errorf("%.50q: got %q, %v, want the end", input, out.String(), err)
		}
	}
}

// pipe is where responses go.
type pipe struct{ bytes.Buffer }

func (*pipe) Close() error { return nil }

// TestErrorsRepeatNothing: no JSON-RPC error repeats a value of the request.
func TestErrorsRepeatNothing(t *testing.T) {
	s := start(t)
	key, _ := s.Key("assistant", everything, 1<<30)
	message := func(method, params string) string {
		return `{"jsonrpc":"2.0","id":7,"method":"` + method + `","params":` + params + `}`
	}
	const future = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	headers := []string{"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "secret", "Mcp-Name", "secret"}
	for _, test := range []struct {
		message string
		header  []string
		code    int
	}{
		{callOf("secret", "{}"), nil, -32602},
		{message("secret", "{}"), nil, -32601},
		{message("secret", "{"+future+"}"), headers, -32601},
		{message("tools/call", `{"name":["secret"]}`), nil, -32602},
		{message("initialize", `{"protocolVersion":["secret"]}`), nil, -32600},
		{message("resources/read", `{"uri":"secret"}`), nil, -32602},
		{message("tools/list", `{"cursor":"secret"}`), nil, -32602},
		{message("tools/call", `{"name":"limits",`+future+`}`), headers, mcp.CodeHeaderMismatch},
		{`{"jsonrpc":"2.0","id":7,"error":"secret"}`, nil, -32600},
	} {
		body := read(t, s.post(key, test.message, test.header...))
		if want := fmt.Sprintf(`"error":{"code":%d,"message":`, test.code); strings.Contains(body, "secret") || !strings.Contains(body, want) {
			t.Errorf("%s: got %s, want %s without the secret", test.message, body, want)
		}
	}
}

// TestVersions: assistants of every version of the protocol that is in use are served, and
// a subscription ends at once, because nothing that it could report changes.
func TestVersions(t *testing.T) {
	s := start(t)
	key, _ := s.Key("assistant", animalstore.Read, 1<<30)
	for _, version := range []string{"2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"} {
		res := s.post(key, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"`+version+`","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}`)
		if body := read(t, res); res.StatusCode != 200 || !strings.Contains(body, `"protocolVersion":"`+version+`"`) || !strings.Contains(body, `"tools":{}`) {
			t.Errorf("initialize %s: got %d %s", version, res.StatusCode, body)
		}
		if res := s.post(key, `{"jsonrpc":"2.0","method":"notifications/initialized"}`, "Mcp-Protocol-Version", version); res.StatusCode != 202 {
			t.Errorf("initialized %s: got %d %s, want 202", version, res.StatusCode, read(t, res))
		}
		res = s.post(key, callOf("inventory", "{}"), "Mcp-Protocol-Version", version)
		if body := read(t, res); res.StatusCode != 200 || !strings.Contains(body, `"structuredContent":{"available":0,"pending":0,"sold":0}`) {
			t.Errorf("inventory %s: got %d %s", version, res.StatusCode, body)
		}
	}
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}`
	res := s.post(key, `{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},`+meta+`}}`,
		"Mcp-Protocol-Version", "2026-07-28", "Mcp-Method", "subscriptions/listen")
	if body := read(t, res); res.StatusCode != 200 || !strings.Contains(body, "subscriptions/acknowledged") {
		t.Errorf("subscribe: got %d %s, want an acknowledgement and the end", res.StatusCode, body)
	}
}
