package openapi

import (
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// TestLimitsOfPlans: the document refuses limits with a plan that has its own, as the service
// does, and enterprise without limits. The tests of package api show what it allows.
func TestLimitsOfPlans(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(YAML)
	if err != nil {
		t.Fatal(err)
	}
	limits := map[string]any{"perMinute": 5000.0, "perDay": 1000000.0}
	for _, test := range []struct {
		schema string
		body   map[string]any
	}{
		{"NewKey", map[string]any{"name": "shop", "plan": "enterprise"}},
		{"NewKey", map[string]any{"name": "shop", "plan": "business", "limits": limits}},
		{"NewKey", map[string]any{"name": "shop", "limits": limits}},
		{"KeyPatch", map[string]any{"plan": "free", "limits": limits}},
	} {
		if doc.Components.Schemas[test.schema].Value.VisitJSON(test.body, openapi3.EnableJSONSchema2020()) == nil {
			t.Errorf("%s: %v: got it accepted, want it refused", test.schema, test.body)
		}
	}
}
