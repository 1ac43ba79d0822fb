package conformance

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

func TestWalk(t *testing.T)      { runWalk(t, startGo(t)) }
func TestWalk_Slow(t *testing.T) { withEachClient(t, runWalk) }

// runWalk makes the same walk through the API of a real server with every client.
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
		// What begins with receive is what webhooks get, so the service calls it.
		if want := !strings.HasPrefix(m[1], "receive"); called[m[1]] != want {
			t.Errorf("%s: called in the walk: %t, want %t", m[1], called[m[1]], want)
		}
	}
}
