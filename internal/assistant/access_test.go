package assistant_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math/bits"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/assistant"
	"animalstore/internal/db"
	"animalstore/internal/server"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const listTools = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`

func callOf(tool, arguments string) string {
	return fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":%q,"arguments":%s}}`, tool, arguments)
}

// toolNeeds are the permissions of which a tool needs one. The others need none.
var toolNeeds = map[string]animalstore.Permissions{
	"find_pets": readsPets, "pet_photo": readsPets, "list_categories": readsPets, "inventory": readsPets,
	"add_pet": writesPets, "change_pet": writesPets, "remove_pet": writesPets,
	"list_orders": readsOrders, "place_order": writesOrders, "change_order": writesOrders,
	"recent_changes": readsPets | readsOrders,
	"limits":         0,
}

const (
	readsPets    = animalstore.Read | animalstore.PetsRead | animalstore.PetsWrite
	readsOrders  = animalstore.Read | animalstore.OrdersRead | animalstore.OrdersWrite
	writesPets   = animalstore.Write | animalstore.PetsWrite
	writesOrders = animalstore.Write | animalstore.OrdersWrite
)

// TestPermissions walks through all tools with up to two permissions: a tool is listed if the
// key may call it. Otherwise the API refuses its call.
func TestPermissions(t *testing.T) {
	s := start(t)
	rex := s.pet("Rex", 7)
	s.photo(rex.ID)
	arguments := map[string]string{
		"add_pet": `{"name":"Mia","categoryId":7}`, "change_pet": `{"petId":1,"name":"Rex"}`, "remove_pet": `{"petId":99}`,
		"pet_photo": `{"petId":1}`, "place_order": `{"petId":99}`, "change_order": `{"orderId":99,"status":"approved"}`,
	}
	for permissions := animalstore.Permissions(1); permissions <= animalstore.AllPermissions; permissions++ {
		if bits.OnesCount8(uint8(permissions)) > 2 {
			continue
		}
		key, _ := s.key(permissions, 1<<30)
		a, b := s.overHTTP(key), s.overPipes(key)
		listed, overPipes := a.tools(), b.tools()
		for tool := range effects {
			args := arguments[tool]
			if args == "" {
				args = "{}"
			}
			needs, known := toolNeeds[tool]
			if !known {
				t.Fatalf("%s: got no row in toolNeeds", tool)
			}
			allowed := needs == 0 || permissions&needs != 0
			if (overPipes[tool] != nil) != allowed {
				t.Errorf("a key with %q: %s is listed over pipes: got %t, want %t", permissions, tool, !allowed, allowed)
			}
			if _, ok := listed[tool]; ok != allowed {
				t.Errorf("a key with %q: %s is listed: got %t, want %t", permissions, tool, ok, allowed)
			}
			if got := refused(t, a.call(tool, args)); (got.Code != animalstore.InsufficientPermission) != allowed {
				t.Errorf("a key with %q: %s: got %+v, want allowed %t", permissions, tool, got, allowed)
			}
		}
	}
}

// TestCredentials: every request needs a key, and those that lack one count against the
// address.
func TestCredentials(t *testing.T) {
	s := start(t)
	key, id := s.key(everything, 1<<30)
	for _, method := range []string{"POST", "GET", "DELETE", "OPTIONS", "PUT"} {
		res := s.send(method, "", listTools)
		if res.StatusCode != 401 || res.Header.Get("WWW-Authenticate") == "" || !strings.Contains(read(t, res), `"missing_api_key"`) {
			t.Errorf("%s without a key: got %d %v, want 401 with WWW-Authenticate and missing_api_key", method, res.StatusCode, res.Header)
		}
	}
	before := s.send("GET", "ast_live_wrong", "").Header.Get("X-Ratelimit-Remaining")
	after := s.send("GET", "ast_live_wrong", "").Header.Get("X-Ratelimit-Remaining")
	if before == after || before == "" {
		t.Errorf("two wrong keys: got %s and then %s requests left for the address, want fewer", before, after)
	}

	// A key that is revoked while an assistant uses it.
	a, pipes := s.overHTTP(key), s.overPipes(key)
	a.get("limits", `{}`, &struct{}{})
	s.changeKey(id, func(k *animalstore.Key) { k.RevokedAt = animalstore.At(s.clock()) })
	s.advance(time.Second)
	if result, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "add_pet", Arguments: json.RawMessage(`{"name":"Rex","categoryId":7}`)}); err == nil {
		t.Errorf("a tool with a revoked key: got %s, want an error", text(result))
	}
	if r := pipes.wantRefused("add_pet", `{"name":"Rex","categoryId":7}`, animalstore.InvalidAPIKey); r.Status != 401 {
		t.Errorf("a tool with a revoked key over pipes: got status %d, want 401", r.Status)
	}
	if res := s.post(key, listTools); res.StatusCode != 401 || !strings.Contains(read(t, res), `"invalid_api_key"`) {
		t.Errorf("a revoked key: got %d, want 401 invalid_api_key", res.StatusCode)
	}
	if pets, err := s.db.CountPets(t.Context(), nil); err != nil || pets.Available != 0 {
		t.Errorf("after the key was revoked: got %+v, %v, want no pet", pets, err)
	}
}

// TestAccess: a suspended key and a foreign address get 403 as under /v1, which counts
// against the address and leaves the key's limits and bans alone.
func TestAccess(t *testing.T) {
	s := start(t, func(c *server.Config) { c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	key, id := s.key(everything, 5)
	inside, outside := []string{"X-Forwarded-For", "203.0.113.9"}, []string{"X-Forwarded-For", "2001:db8::9"}
	s.changeKey(id, func(k *animalstore.Key) { k.Networks = "203.0.113.0/24" })
	want := func(header []string, code string) {
		t.Helper()
		for _, message := range []string{listTools, callOf("add_pet", `{"name":"Rex","categoryId":7}`)} {
			res := s.post(key, message, header...)
			if body := read(t, res); res.StatusCode != 403 || !strings.Contains(body, code) || res.Header.Get("X-Ratelimit-Limit") != "3000" {
				t.Errorf("from %s: got %d %s %v, want 403 %s and the limit of the address", header[1], res.StatusCode, body, res.Header, code)
			}
		}
	}
	for range 100 { // as many as would ban the key
		want(outside, `"address_not_allowed"`)
	}
	// The address reaches the API too, whose check would refuse the call otherwise.
	if body := read(t, s.post(key, callOf("limits", "{}"), inside...)); !strings.Contains(body, `"remaining":4`) || !strings.Contains(body, `"count":0`) {
		t.Errorf("from inside: got %s, want the limits of an unused key", body)
	}
	s.changeKey(id, func(k *animalstore.Key) { k.Suspend(animalstore.At(s.clock())) })
	s.advance(time.Second)
	want(inside, `"key_suspended"`)
	s.changeKey(id, func(k *animalstore.Key) { k.Resume() })
	s.advance(time.Second)
	if res := s.post(key, listTools, inside...); res.StatusCode != 200 {
		t.Errorf("after resuming: got %d %s, want 200", res.StatusCode, read(t, res))
	}
}

// TestRefusedRequests are requests that never reach a tool.
func TestRefusedRequests(t *testing.T) {
	s := start(t)
	key, _ := s.key(everything, 1<<30)
	for _, test := range []struct {
		name, method, message string
		header                []string
		status                int
		body                  string // a part of it
	}{
		{"GET", "GET", "", nil, 405, `"method_not_allowed"`},
		{"HEAD", "HEAD", "", nil, 405, ""},
		{"DELETE", "DELETE", "", nil, 405, `"method_not_allowed"`},
		{"OPTIONS", "OPTIONS", "", nil, 405, `"method_not_allowed"`},
		{"batch", "POST", " [" + listTools + "]", nil, 400, "batches are not supported"},
		{"empty batch", "POST", "[]", nil, 400, "batches are not supported"},
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
		{"a page of no origin", "POST", listTools, []string{"Origin", "null"}, 403, "other origins"},
		{"a page of another site", "POST", listTools, []string{"Sec-Fetch-Site", "cross-site"}, 403, "other origins"},
		{"a page of ours", "POST", listTools, []string{"Origin", s.url}, 200, `"find_pets"`},
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
	key, _ := s.key(everything, 1<<30)
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
		{"90,000 members", ping(members(90_000)), notJSON},
		{"1,001 members", ping(members(997)), notJSON},
		{"450,000 entries", ping(entries(450_000)), notJSON},
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
	if pets, err := s.db.CountPets(t.Context(), nil); err != nil || pets.Available != 0 {
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
	key, _ := s.key(everything, 1<<30)
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

// TestLimitHeaders: every response says what is left of the key's limit.
func TestLimitHeaders(t *testing.T) {
	s := start(t)
	s.photo(s.pet("Rex", 7).ID)
	key, _ := s.key(everything, 100)
	left := 100
	for _, test := range []struct {
		message string
		cost    int
	}{
		{callOf("inventory", "{}"), 1}, {callOf("pet_photo", `{"petId":1}`), 2}, {callOf("remove_pet", `{"petId":99}`), 1},
		{callOf("find_pets", `{"x":1}`), 1}, {listTools, 1}, {"[]", 1}, {"{", 1}, {`{"jsonrpc":"2.0","method":"notifications/initialized"}`, 1},
	} {
		left -= test.cost
		h := s.post(key, test.message).Header
		if h.Get("X-Ratelimit-Limit") != "100" || h.Get("X-Ratelimit-Remaining") != strconv.Itoa(left) || h.Get("X-Ratelimit-Reset") == "" {
			t.Errorf("%s: got %v, want %d of 100 left", test.message, h, left)
		}
	}
}

// TestFailures: requests of assistants that fail are kept under /mcp, and failed calls of
// the API under their own paths, with the id of the request.
func TestFailures(t *testing.T) {
	s := start(t)
	key, _ := s.key(animalstore.Read, 1<<30)
	s.send("GET", key, "")
	s.post(key, callOf("add_pet", `{"name":"Rex","categoryId":7}`), "X-Request-Id", "of-the-call")
	if err := s.server.Handler().SaveFailures(t.Context()); err != nil {
		t.Fatal(err)
	}
	failures, err := s.db.Failures(t.Context(), db.FailureQuery{Limit: 10})
	if err != nil || len(failures) != 2 {
		t.Fatalf("got %+v, %v, want two failures", failures, err)
	}
	call, get := failures[0], failures[1]
	if *get.Route != "/mcp" || get.Code != animalstore.MethodNotAllowed || *call.Route != "/v1/pets" || call.RequestID != "of-the-call" {
		t.Errorf("got %+v and %+v, want the GET of /mcp and the POST of /v1/pets", get, call)
	}
}

// TestVersions: assistants of every version of the protocol that is in use are served, and
// a subscription ends at once, because nothing that it could report changes.
func TestVersions(t *testing.T) {
	s := start(t)
	key, _ := s.key(animalstore.Read, 1<<30)
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

// TestDoorClosed: without the assistant there is nothing at /mcp.
func TestDoorClosed(t *testing.T) {
	s := start(t, func(c *server.Config) { c.NoMCP = true })
	key, _ := s.key(everything, 1<<30)
	if res := s.post(key, listTools); res.StatusCode != 404 || !strings.Contains(read(t, res), `"route_not_found"`) {
		t.Errorf("got %d, want 404 route_not_found", res.StatusCode)
	}
}

// TestCharges: a tool costs what its calls of the API cost, and everything else one request.
func TestCharges(t *testing.T) {
	s := start(t)
	s.photo(s.pet("Rex", 7).ID)
	key, _ := s.key(everything, 1000)
	remaining := func() int {
		t.Helper()
		var body struct {
			Result struct{ StructuredContent animalstore.LimitStatus }
		}
		if err := json.Unmarshal([]byte(read(t, s.post(key, callOf("limits", "{}")))), &body); err != nil {
			t.Fatal(err)
		}
		return int(body.Result.StructuredContent.Minute.Remaining)
	}
	for _, test := range []struct {
		method, message string
		cost            int
	}{
		{"POST", listTools, 1},
		{"POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, 1},
		{"POST", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, 1},
		{"GET", "", 1},
		{"POST", "[]", 1},
		{"POST", callOf("nothing", "{}"), 1},
		{"POST", callOf("find_pets", `{"x":1}`), 1},
		{"POST", callOf("find_pets", `{}`), 1},
		{"POST", callOf("remove_pet", `{"petId":99}`), 1},
		{"POST", callOf("pet_photo", `{"petId":1}`), 2},
	} {
		before := remaining()
		s.send(test.method, key, test.message)
		if cost := before - remaining() - 1; cost != test.cost {
			t.Errorf("%s %s: got a cost of %d, want %d", test.method, test.message, cost, test.cost)
		}
	}
}

// TestLimits: limits and bans are those of the key, for tools and for everything else.
func TestLimits(t *testing.T) {
	s := start(t)
	key, _ := s.key(everything, 5)
	a := s.overHTTP(key)
	for i := 0; refused(t, a.call("inventory", "{}")).Code == ""; i++ {
		if i == 5 {
			t.Fatal("got more calls than the limit allows")
		}
	}
	if r := a.wantRefused("inventory", "{}", animalstore.RateLimitExceeded); r.RetryAfter != 60 || r.Status != 429 {
		t.Errorf("a call over the limit: got %+v, want 429 and 60 s to wait", r)
	}
	res := s.post(key, listTools)
	if res.StatusCode != 429 || res.Header.Get("Retry-After") != "60" || !strings.Contains(read(t, res), `"rate_limit_exceeded"`) {
		t.Errorf("a list over the limit: got %d %v, want 429 and 60 s to wait", res.StatusCode, res.Header)
	}
	s.advance(2 * time.Second)
	for i := range 100 {
		message := listTools
		if i%2 == 0 {
			message = callOf("add_pet", `{"name":"Rex","categoryId":7}`)
		}
		s.post(key, message)
	}
	if r := refused(t, a.call("inventory", "{}")); r.Code != animalstore.KeyBanned || r.RetryAfter != 300 {
		t.Errorf("a call after 100 strikes: got %+v, want key_banned for 300 s", r)
	}
}

// TestBurst: of 1,000 calls at once, as many are made as the limit allows.
func TestBurst(t *testing.T) {
	s := start(t)
	const limit, calls = 60, 1000
	key, _ := s.key(everything, limit)
	codes := make(chan animalstore.Code, calls)
	var wait sync.WaitGroup
	for range 50 {
		wait.Go(func() {
			for range calls / 50 {
				var body struct{ Result mcp.CallToolResult }
				if err := json.Unmarshal([]byte(read(t, s.post(key, callOf("add_pet", `{"name":"Rex","categoryId":7}`)))), &body); err != nil {
					t.Error(err)
				}
				codes <- refused(t, &body.Result).Code
			}
		})
	}
	wait.Wait()
	close(codes)
	got := map[animalstore.Code]int{}
	for code := range codes {
		got[code]++
	}
	pets, err := s.db.CountPets(t.Context(), nil)
	if got[""] != limit || got[animalstore.RateLimitExceeded] != calls-limit || err != nil || pets.Available != limit {
		t.Errorf("got %v and %+v (%v), want %d pets and the other calls refused", got, pets, err, limit)
	}
}

// TestRace: of two orders for one pet, one is placed.
func TestRace(t *testing.T) {
	s := start(t)
	key, _ := s.key(everything, 1<<30)
	a, b := s.overHTTP(key), s.overPipes(key)
	for range 20 {
		pet := s.pet("Rex", 7)
		codes := make(chan animalstore.Code, 2)
		for _, assistant := range []*session{a, b} {
			go func() { codes <- refused(t, assistant.call("place_order", fmt.Sprintf(`{"petId":%d}`, pet.ID))).Code }()
		}
		got := map[animalstore.Code]int{<-codes: 1}
		got[<-codes]++
		if got[""] != 1 || got[animalstore.PetNotAvailable] != 1 {
			t.Fatalf("pet %d: got %v, want one order and pet_not_available", pet.ID, got)
		}
	}
}

// TestSecrets: nothing tells of keys and webhooks, even to an admin, and no log or result
// contains the key.
func TestSecrets(t *testing.T) {
	s := start(t)
	key, id := s.key(everything, 1<<30)
	s.changeKey(id, func(k *animalstore.Key) { k.Name = "renamed" })
	res := s.post(key, callOf("recent_changes", "{}"), "X-Request-Id", "from-the-assistant")
	body := read(t, res)
	if strings.Contains(body, "key.") || strings.Contains(body, key) {
		t.Errorf("recent changes: got %s, want none of keys", body)
	}
	for _, message := range []string{"{" + key, callOf(key, "{}"), callOf("find_pets", `{"`+key+`":1}`)} {
		s.post(key, message)
	}
	log := s.logged()
	if strings.Contains(log, key) || !strings.Contains(log, "path=/mcp") {
		t.Errorf("the log: got %s, want the requests without the key", log)
	}
	if strings.Count(log, "request_id=from-the-assistant") != 2 || res.Header.Get("X-Request-Id") != "from-the-assistant" {
		t.Errorf("the log: got %s, want the id of the request also for its call of the API", log)
	}
}
