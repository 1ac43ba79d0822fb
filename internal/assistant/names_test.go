package assistant_test

import (
	"strings"
	"testing"
)

// TestArgumentNames: an error names the argument that is wrong as the tool does, also if the
// API found it, and suggests the one that was probably meant.
func TestArgumentNames(t *testing.T) {
	s := start(t)
	key, _ := s.Key("assistant", everything, 1<<30)
	a, pipes := s.overHTTP(key), s.overPipes(key)
	a.get("add_pet", `{"name":"Rex","categoryId":7,"idempotencyKey":"k"}`, &struct{}{})
	const secret = "ast_live_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	for _, test := range []struct{ tool, arguments, want, not string }{
		{"find_pets", `{"nmae":"Rex"}`, "unknown argument nmae (did you mean name?)", ""},
		{"find_pets", `{"colour":"red"}`, "unknown argument colour: the arguments are name, status", "did you"},
		{"find_pets", `{"` + secret + `":"red"}`, "unknown argument: the arguments are name", secret},
		{"remove_pet", `{"pet_id":1}`, "unknown argument pet_id (did you mean petId?)", ""},
		{"limits", `{"key":1}`, "unknown argument key: there are none", ""},
		{"remove_pet", `{}`, "petId is required", ""},
		{"change_order", `{"orderId":"1"}`, "orderId must be an integer", ""},
		{"change_order", `{"orderId":1,"status":"placed"}`, "status must be one of approved, delivered, cancelled", ""},
		{"add_pets", `{"pets":[{"name":"Rex","categoryId":7},{"name":"Rex","category_id":7}]}`,
			"unknown argument pets[1].category_id (did you mean pets[1].categoryId?)", ""},
		{"add_pets", `{"pets":[{"name":"Rex","categoryId":7},{"name":"Mia"}]}`, "pets[1].categoryId is required", ""},
		{"add_pets", `{"pets":[{"name":" ","categoryId":7}]}`, "pets[0].name must", ""},
		{"name_category", `{"name":"Dogs"}`, "categoryId is required", ""},
		{"find_pets", `{"name":"R","ids":[1]}`, "combined with ids:", "with id:"},
		{"find_pets", `{"cursor":"x"}`, "nextCursor", "Link"},
		{"add_pet", `{"name":"Rex","categoryId":7,"idempotencyKey":"a b"}`, "idempotencyKey must", "Idempotency-Key"},
		{"add_pet", `{"name":"Rex","categoryId":7,"idempotencyKey":"a\nb"}`, "idempotencyKey must", "Idempotency-Key"},
		{"add_pet", `{"name":"Rex","categoryId":7,"idempotencyKey":""}`, "idempotencyKey must", "Idempotency-Key"},
		{"add_pet", `{"name":"Max","categoryId":7,"idempotencyKey":"k"}`, "idempotencyKey was already used with other", "body"},
	} {
		for _, session := range []*session{a, pipes} {
			got := refused(t, session.call(test.tool, test.arguments)).Message
			if !strings.Contains(got, test.want) || test.not != "" && strings.Contains(got, test.not) {
				t.Errorf("%s %s: got %q, want %q, without %q", test.tool, test.arguments, got, test.want, test.not)
			}
		}
	}
}

// TestDescribedNames: what find_pets searches, and which statuses an order can get, is in the
// schemas.
func TestDescribedNames(t *testing.T) {
	s := start(t)
	key, _ := s.Key("assistant", everything, 1<<30)
	listed := s.overHTTP(key).tools()
	property := func(tool, name string) map[string]any {
		return listed[tool].InputSchema.(map[string]any)["properties"].(map[string]any)[name].(map[string]any)
	}
	if got := property("find_pets", "name")["description"].(string); !strings.Contains(got, "first four words") {
		t.Errorf("find_pets: got the description %q of name, want the first four words in it", got)
	}
	if got := property("change_order", "status")["enum"].([]any); len(got) != 3 || got[0] != "approved" {
		t.Errorf("change_order: got the statuses %v, want approved, delivered and cancelled", got)
	}
}
