package conformance

import (
	"os"
	"regexp"
	"testing"
)

// TestWalk makes the same walk through the API of a real server with every client.
func TestWalk(t *testing.T) {
	for _, c := range clients {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			runWalk(t, c.start(t))
		})
	}
}

// runWalk makes the walk with one client.
func runWalk(t *testing.T, a *adapter) {
	walk := loadWalk(t)
	url := startReal(t)
	o := walk.steps(t, a, places{"server": url})
	for _, wrong := range walk.check(o) {
		t.Error(wrong)
	}
}

func loadWalk(t testing.TB) *scenario {
	t.Helper()
	text, err := os.ReadFile("testdata/walk.json")
	if err != nil {
		t.Fatal(err)
	}
	walk := &scenario{Client: map[string]any{"apiKey": ownerKey}}
	if err := decodeStrictly(text, &walk.Steps); err != nil {
		t.Fatal(err)
	}
	return walk
}

// missingOperations aren't in the clients.
var missingOperations = map[string]string{
	"receiveEvent": "the service calls it",
}

// TestWalkIsComplete: the walk calls every operation of the OpenAPI document, so that no
// client lacks one.
func TestWalkIsComplete(t *testing.T) {
	document, err := os.ReadFile("../../openapi/openapi.yaml")
	if err != nil {
		t.Fatal(err)
	}
	called := map[string]bool{}
	for _, step := range loadWalk(t).Steps {
		called[step.Call] = true
	}
	for _, m := range regexp.MustCompile(`(?m)^ +operationId: (\w+)$`).FindAllStringSubmatch(string(document), -1) {
		if _, missing := missingOperations[m[1]]; called[m[1]] == missing {
			t.Errorf("%s: called in the walk: %t, listed as missing: %t, want one of both", m[1], called[m[1]], missing)
		}
	}
}
