package openapi

import (
	"encoding/json"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// TestLimitsOfPlans: the document allows limits where the service does: with the plan
// enterprise, and in a change that leaves the plan as it is.
func TestLimitsOfPlans(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(YAML)
	if err != nil {
		t.Fatal(err)
	}
	const limits = `"limits": {"perMinute": 5000, "perDay": 1000000}`
	for _, test := range []struct {
		schema, body string
		valid        bool
	}{
		{"NewKey", `{"name": "shop"}`, true},
		{"NewKey", `{"name": "shop", "plan": "free"}`, true},
		{"NewKey", `{"name": "shop", "plan": "enterprise", ` + limits + `}`, true},
		{"NewKey", `{"name": "shop", "plan": "enterprise"}`, false},
		{"NewKey", `{"name": "shop", "plan": "free", ` + limits + `}`, false},
		{"NewKey", `{"name": "shop", "plan": "business", ` + limits + `}`, false},
		{"NewKey", `{"name": "shop", ` + limits + `}`, false},
		{"KeyPatch", `{}`, true},
		{"KeyPatch", `{"plan": "pro"}`, true},
		{"KeyPatch", `{"plan": "enterprise", ` + limits + `}`, true},
		{"KeyPatch", `{"plan": "enterprise"}`, true}, // of a key that has it already
		{"KeyPatch", `{` + limits + `}`, true},
		{"KeyPatch", `{"plan": "free", ` + limits + `}`, false},
	} {
		var body any
		if err := json.Unmarshal([]byte(test.body), &body); err != nil {
			t.Fatal(err)
		}
		err := doc.Components.Schemas[test.schema].Value.VisitJSON(body, openapi3.EnableJSONSchema2020())
		if (err == nil) != test.valid {
			t.Errorf("%s: %s: got error %v, want it valid: %t", test.schema, test.body, err, test.valid)
		}
	}
}
