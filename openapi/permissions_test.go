package openapi_test

import (
	"regexp"
	"strings"
	"testing"

	"animalstore/internal/api"
	"animalstore/openapi"

	"github.com/getkin/kin-openapi/openapi3"
)

// TestPermissions: the description of each operation names the permissions of which it
// needs one.
func TestPermissions(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(openapi.YAML)
	if err != nil {
		t.Fatal(err)
	}
	sentence := regexp.MustCompile("Needs\\s+(?:no|the\\s+`([a-z:]+)`(?:\\s+or\\s+the\\s+`([a-z:]+)`)?)\\s+permission")
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			named, want := sentence.FindStringSubmatch(op.Description), api.PermissionOf(op.OperationID).String()
			if named == nil || strings.Trim(named[1]+","+named[2], ",") != want {
				t.Errorf("%s %s: got %q, want it to name the permissions %q", method, path, op.Description, want)
			}
		}
	}
}
