// Package conformance runs the scenarios in clients/scenarios, and a walk against the
// real server, with every client: Go, TypeScript and Python. A promise that one of them
// breaks fails. README.md describes scenarios and adapters.
package conformance

import (
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"animalstore/internal/testenv"
)

func TestMain(m *testing.M) {
	testenv.MostlyWait()
	var err error
	if workDir, err = os.MkdirTemp("", "animalstore-conformance-"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(workDir)
	os.Exit(code)
}

// workDir is removed after the tests.
var workDir string

// withEachClient runs a test with the clients in other languages than Go.
func withEachClient(t *testing.T, test func(*testing.T, *adapter)) {
	for name, start := range map[string]func(testing.TB) *adapter{
		"python": startPython, "python-async": startPythonAsync, "typescript": startTypeScript,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, start(t))
		})
	}
}

func TestScenarios(t *testing.T)      { runScenarios(t, startGo(t)) }
func TestScenarios_Slow(t *testing.T) { withEachClient(t, runScenarios) }

// runScenarios runs every scenario with one client.
func runScenarios(t *testing.T, a *adapter) {
	for _, s := range loadScenarios(t) {
		if s.Except[a.name] != "" {
			continue
		}
		t.Run(s.file+"/"+s.Name, func(t *testing.T) {
			t.Parallel()
			o := s.run(t, a)
			for _, wrong := range s.check(o) {
				t.Error(wrong)
			}
			if t.Failed() {
				t.Logf("the promise: %s", s.Promise)
			}
		})
	}
}

// outcome is what happened in a run of a scenario.
type outcome struct {
	places   places
	replies  []any // of each step, or a list for steps that run together
	saved    map[string]any
	requests []map[string]any
}

// defaultOptions of clients make retries fast.
var defaultOptions = map[string]any{"baseURL": "{server}", "apiKey": "ast_live_secret", "backoffBase": 10.0, "backoffMax": 20.0}

var clientNumber atomic.Int64

// run runs a scenario with one client.
func (s *scenario) run(t testing.TB, a *adapter) *outcome {
	t.Helper()
	server := startScripted(t, s.Server)
	o := s.steps(t, a, server.places)
	o.requests = server.requests()
	return o
}

// steps makes the calls of a scenario.
func (s *scenario) steps(t testing.TB, a *adapter, p places) *outcome {
	t.Helper()
	args := map[string]any{}
	for _, options := range []map[string]any{defaultOptions, s.Client} {
		for name, value := range options {
			args[name] = p.fill(value)
		}
	}
	o := &outcome{places: p, saved: map[string]any{}}
	id := strconv.FormatInt(clientNumber.Add(1), 10)
	created, err := a.do(command{Client: id, Call: "new", Args: args})
	if err != nil {
		t.Fatal(err)
	}
	if created["error"] != nil {
		o.replies = append(o.replies, created)
		return o
	}
	defer func() {
		if _, err := a.do(command{Client: id, Call: "close"}); err != nil {
			t.Error(err)
		}
	}()
	for _, step := range s.Steps {
		o.replies = append(o.replies, o.do(t, a, id, step))
	}
	return o
}

// do makes the calls of one step and returns the reply, or a list of replies.
func (o *outcome) do(t testing.TB, a *adapter, client string, s step) any {
	t.Helper()
	if s.Together != nil {
		replies := make([]any, len(s.Together))
		var running sync.WaitGroup
		for i, one := range s.Together {
			running.Go(func() { replies[i] = o.do(t, a, client, one) })
		}
		running.Wait()
		return replies
	}
	if s.Call == "new" {
		return map[string]any{} // the client was created before the first step
	}
	call := map[string]any{"args": orEmpty(s.Args), "options": orEmpty(s.Options)}
	filled, err := resolve(o.places.fill(call), o.saved)
	if err != nil {
		t.Error(err)
		return nil
	}
	call = filled.(map[string]any)
	began := time.Now()
	reply, err := a.do(command{Client: client, Call: s.Call, Args: call["args"].(map[string]any), Options: call["options"].(map[string]any)})
	if err != nil {
		t.Error(err)
		return nil
	}
	reply["took"] = float64(time.Since(began).Milliseconds())
	if s.Save != "" {
		o.saved[s.Save] = reply
	}
	return reply
}

func orEmpty(m map[string]any) map[string]any {
	if m == nil {
		return map[string]any{}
	}
	return m
}

// check compares an outcome with what the scenario wants.
func (s *scenario) check(o *outcome) (wrong []string) {
	if len(o.replies) != len(s.Steps) {
		wrong = append(wrong, fmt.Sprintf("got %d replies to %d steps", len(o.replies), len(s.Steps)))
	}
	for i := range min(len(o.replies), len(s.Steps)) {
		wrong = append(wrong, s.Steps[i].check(fmt.Sprintf("step %d", i+1), o, o.replies[i])...)
	}
	want, _ := o.places.fill(s.Requests).([]any)
	return append(wrong, matchRequests(want, o.requests)...)
}

func (s step) check(at string, o *outcome, got any) (wrong []string) {
	if s.Together != nil {
		replies, _ := got.([]any)
		if len(replies) != len(s.Together) {
			return []string{fmt.Sprintf("%s: got %d replies, want %d", at, len(replies), len(s.Together))}
		}
		for i, one := range s.Together {
			wrong = append(wrong, one.check(fmt.Sprintf("%s, call %d", at, i+1), o, replies[i])...)
		}
		return wrong
	}
	resolved, err := resolve(o.places.fill(orEmpty(asObject(s.Want))), o.saved)
	if err != nil {
		return []string{fmt.Sprintf("%s: %v", at, err)}
	}
	want := resolved.(map[string]any)
	if _, ok := want["error"]; !ok {
		want["error"] = nil // success, unless the scenario wants an error
	}
	at += " (" + s.Call + ")"
	return append(match(at, want, got), checkAttempts(at, asObject(got))...)
}

// checkAttempts checks that an error of a client that counts attempts has the right number:
// that of the call, or of the wait that it is the reason for.
func checkAttempts(at string, reply map[string]any) (wrong []string) {
	if meta := asObject(reply["meta"]); meta != nil {
		wrong = matchAttempts(at+".error", meta["attempts"], reply["error"])
	}
	waits, _ := reply["waits"].([]any)
	for i := range waits {
		wait := asObject(waits[i])
		wrong = append(wrong, matchAttempts(fmt.Sprintf("%s.waits[%d].reason", at, i), wait["attempt"], wait["reason"])...)
	}
	return wrong
}

func matchAttempts(at string, want, err any) []string {
	got, counts := asObject(err)["attempts"]
	if !counts {
		return nil
	}
	return match(at+".attempts", want, got)
}

func asObject(value any) map[string]any {
	object, _ := value.(map[string]any)
	return object
}
