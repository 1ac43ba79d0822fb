package conformance

import (
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"animalstore"
	"animalstore/client"
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

func TestFollowing(t *testing.T)      { runFollowing(t, startGo(t)) }
func TestFollowing_Slow(t *testing.T) { withEachClient(t, runFollowing) }

// runFollowing: a follower gets 1,000 events in one request while they happen.
func runFollowing(t *testing.T, a *adapter) {
	const pets = 1000
	url := startReal(t)
	owner, err := client.New(url, ownerKey)
	if err != nil {
		t.Fatal(err)
	}
	key, err := owner.CreateKey(t.Context(), client.NewKey{
		Name: a.name, Plan: animalstore.PlanEnterprise, Limits: animalstore.Limits{PerMinute: 1 << 40, PerDay: 1 << 40},
		Permissions: animalstore.Read | animalstore.Write,
	})
	if err != nil {
		t.Fatal(err)
	}
	writer, err := client.New(url, key.Secret)
	if err != nil {
		t.Fatal(err)
	}
	var creating sync.WaitGroup
	for range 4 {
		creating.Go(func() {
			for range pets / 4 {
				if _, err := writer.CreatePet(t.Context(), animalstore.NewPet{Name: "Rex"}); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	follow := &scenario{Client: map[string]any{"apiKey": key.Secret}, Steps: []step{
		{Call: "events", Args: map[string]any{"events": map[string]any{"types": []any{"pet.*"}}}, Options: map[string]any{"take": pets}},
	}}
	reply := asObject(follow.steps(t, a, places{"server": url}).replies[0])
	creating.Wait()
	events, _ := reply["result"].([]any)
	attempts, _ := reply["attempts"].([]any)
	if len(events) != pets || len(attempts) != 1 {
		t.Errorf("got %d events in %d requests, error %v, want %d in 1", len(events), len(attempts), reply["error"], pets)
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
