package assistant_test

import (
	"encoding/json"
	"math/bits"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/server"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// toolNeeds are the permissions of which a tool needs one. The others need none.
var toolNeeds = map[string]animalstore.Permissions{
	"find_pets": readsPets, "pet_photo": readsPets, "list_categories": readsPets, "inventory": readsPets,
	"add_pet": writesPets, "add_pets": writesPets, "change_pet": writesPets, "remove_pet": writesPets,
	"name_category": writesPets,
	"list_orders":   readsOrders, "place_order": writesOrders, "change_order": writesOrders,
	"recent_changes": readsPets | readsOrders,
	"limits":         0,
}

const (
	readsPets    = animalstore.Read | animalstore.PetsRead | animalstore.PetsWrite
	readsOrders  = animalstore.Read | animalstore.OrdersRead | animalstore.OrdersWrite
	writesPets   = animalstore.Write | animalstore.PetsWrite
	writesOrders = animalstore.Write | animalstore.OrdersWrite
)

// TestPermissions walks through all tools with each permission and with all of them: a tool
// is listed if the key may call it. Otherwise the API refuses its call.
func TestPermissions(t *testing.T) {
	s := start(t)
	rex := s.Pet("Rex")
	s.Photo(rex.ID)
	arguments := map[string]string{
		"add_pet": `{"name":"Mia","categoryId":7}`, "change_pet": `{"petId":1,"name":"Rex"}`, "remove_pet": `{"petId":99}`,
		"add_pets": `{"pets":[{"name":"Mia","categoryId":7}]}`, "name_category": `{"categoryId":7,"name":"Dogs"}`,
		"pet_photo": `{"petId":1}`, "place_order": `{"petId":99}`, "change_order": `{"orderId":99,"status":"approved"}`,
	}
	for permissions := animalstore.Permissions(1); permissions <= animalstore.AllPermissions; permissions++ {
		if bits.OnesCount8(uint8(permissions)) > 1 && permissions != animalstore.AllPermissions {
			continue
		}
		key, _ := s.Key("assistant", permissions, 1<<30)
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

// TestCredentials: every request needs a key that works.
func TestCredentials(t *testing.T) {
	s := start(t)
	key, id := s.Key("assistant", everything, 1<<30)
	for _, method := range []string{"POST", "GET"} {
		res := s.send(method, "", listTools)
		if res.StatusCode != 401 || res.Header.Get("WWW-Authenticate") == "" || !strings.Contains(read(t, res), `"missing_api_key"`) {
			t.Errorf("%s without a key: got %d %v, want 401 with WWW-Authenticate and missing_api_key", method, res.StatusCode, res.Header)
		}
	}

	// A key that is revoked while an assistant uses it.
	a, pipes := s.overHTTP(key), s.overPipes(key)
	a.get("limits", `{}`, &struct{}{})
	s.changeKey(id, func(k *animalstore.Key) { k.RevokedAt = animalstore.At(s.Now()) })
	s.Advance(time.Second)
	if result, err := a.CallTool(t.Context(), &mcp.CallToolParams{Name: "add_pet", Arguments: json.RawMessage(`{"name":"Rex","categoryId":7}`)}); err == nil {
		t.Errorf("a tool with a revoked key: got %s, want an error", text(result))
	}
	if r := pipes.wantRefused("add_pet", `{"name":"Rex","categoryId":7}`, animalstore.InvalidAPIKey); r.Status != 401 {
		t.Errorf("a tool with a revoked key over pipes: got status %d, want 401", r.Status)
	}
	if res := s.post(key, listTools); res.StatusCode != 401 || !strings.Contains(read(t, res), `"invalid_api_key"`) {
		t.Errorf("a revoked key: got %d, want 401 invalid_api_key", res.StatusCode)
	}
}

// TestAccess: a foreign address gets 403 as under /v1, which counts against the address and
// leaves the key's limits alone.
func TestAccess(t *testing.T) {
	s := start(t, func(c *server.Config) { c.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")} })
	key, id := s.Key("assistant", everything, 5)
	s.changeKey(id, func(k *animalstore.Key) { k.Networks = "203.0.113.0/24" })
	for _, message := range []string{listTools, callOf("add_pet", `{"name":"Rex","categoryId":7}`)} {
		res := s.post(key, message, "X-Forwarded-For", "2001:db8::9")
		if body := read(t, res); res.StatusCode != 403 || !strings.Contains(body, `"address_not_allowed"`) ||
			res.Header.Get("X-Ratelimit-Limit") != "3000" {
			t.Errorf("from outside: got %d %s %v, want 403 and the limit of the address", res.StatusCode, body, res.Header)
		}
	}
	// The address reaches the API too, whose check would refuse the call otherwise.
	if body := read(t, s.post(key, callOf("limits", "{}"), "X-Forwarded-For", "203.0.113.9")); !strings.Contains(body, `"remaining":4`) {
		t.Errorf("from inside: got %s, want the limits of an unused key", body)
	}
}

// TestFailures: requests of assistants that fail are kept under /mcp, and failed calls of
// the API under their own paths, with the id of the request.
func TestFailures(t *testing.T) {
	s := start(t)
	key, _ := s.Key("assistant", animalstore.Read, 1<<30)
	s.send("GET", key, "")
	s.post(key, callOf("add_pet", `{"name":"Rex","categoryId":7}`), "X-Request-Id", "of-the-call")
	if err := s.Server.Handler().SaveFailures(t.Context()); err != nil {
		t.Fatal(err)
	}
	failures, err := s.DB.Failures(t.Context(), animalstore.FailureQuery{}, db.Page{Limit: 10})
	if err != nil || len(failures) != 2 {
		t.Fatalf("got %+v, %v, want two failures", failures, err)
	}
	call, get := failures[0], failures[1]
	if *get.Route != "/mcp" || get.Code != animalstore.MethodNotAllowed || *call.Route != "/v1/pets" || call.RequestID != "of-the-call" {
		t.Errorf("got %+v and %+v, want the GET of /mcp and the POST of /v1/pets", get, call)
	}
}

// TestDoorClosed: without the assistant there is nothing at /mcp.
func TestDoorClosed(t *testing.T) {
	s := start(t, func(c *server.Config) { c.NoMCP = true })
	key, _ := s.Key("assistant", everything, 1<<30)
	if res := s.post(key, listTools); res.StatusCode != 404 || !strings.Contains(read(t, res), `"route_not_found"`) {
		t.Errorf("got %d, want 404 route_not_found", res.StatusCode)
	}
}

// TestCharges: a tool costs what its calls of the API cost, and everything else one request.
// Every response says what is left of the key's limit.
func TestCharges(t *testing.T) {
	s := start(t)
	s.Photo(s.Pet("Rex").ID)
	key, _ := s.Key("assistant", everything, 100)
	left := 100
	for _, test := range []struct {
		method, message string
		cost            int
	}{
		{"POST", listTools, 1},
		{"POST", `{"jsonrpc":"2.0","method":"notifications/initialized"}`, 1},
		{"POST", `{"jsonrpc":"2.0","id":1,"method":"ping"}`, 1},
		{"GET", "", 1},
		{"POST", "[]", 1},
		{"POST", "{", 1},
		{"POST", callOf("nothing", "{}"), 1},
		{"POST", callOf("find_pets", `{"x":1}`), 1},
		{"POST", callOf("find_pets", `{}`), 1},
		{"POST", callOf("remove_pet", `{"petId":99}`), 1},
		{"POST", callOf("pet_photo", `{"petId":1}`), 2},
		{"POST", callOf("pet_photo", `{"petId":99}`), 2},
		{"POST", callOf("add_pets", `{"pets":[{"name":"Mia","categoryId":7},{"name":"Max","categoryId":7}]}`), 1},
	} {
		left -= test.cost
		h := s.send(test.method, key, test.message).Header
		if h.Get("X-Ratelimit-Limit") != "100" || h.Get("X-Ratelimit-Remaining") != strconv.Itoa(left) || h.Get("X-Ratelimit-Reset") == "" {
			t.Errorf("%s %s: got %v, want %d of 100 left", test.method, test.message, h, left)
		}
	}
}

// TestLimits: the limit is that of the key, for tools and for everything else.
func TestLimits(t *testing.T) {
	s := start(t)
	key, _ := s.Key("assistant", everything, 5)
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
}

// TestSecrets: nothing tells of keys and webhooks, even to an admin, and no log or result
// contains the key.
func TestSecrets(t *testing.T) {
	s := start(t)
	key, id := s.Key("assistant", everything, 1<<30)
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
