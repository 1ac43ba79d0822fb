package conformance

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
)

// TestScenariosCanFail shows that every expectation of every scenario is checked: the
// outcome of a run must not match once any one of them is changed.
func TestScenariosCanFail(t *testing.T) {
	a := startGo(t)
	for _, s := range loadScenarios(t) {
		t.Run(s.file+"/"+s.Name, func(t *testing.T) {
			t.Parallel()
			o := s.run(t, a)
			if wrong := s.check(o); len(wrong) > 0 {
				t.Skipf("TestScenarios fails too: %s", wrong[0])
			}
			changed := 0
			for at, altered := range s.alterations() {
				changed++
				if len(altered.check(o)) == 0 {
					t.Errorf("still passes with another value of %s", at)
				}
			}
			if changed == 0 {
				t.Error("expects nothing")
			}
		})
	}
}

// TestServerMatters shows that every scenario depends on the scripted server: with
// another first reply it must fail.
func TestServerMatters(t *testing.T) {
	a := startGo(t)
	for _, s := range loadScenarios(t) {
		if len(s.Server) == 0 {
			continue
		}
		t.Run(s.file+"/"+s.Name, func(t *testing.T) {
			t.Parallel()
			odd := s.clone()
			odd.Server[0] = reply{Status: 418, Text: "short and stout", Headers: map[string]any{"Content-Type": "text/plain"}}
			if len(s.check(odd.run(t, a))) == 0 {
				t.Error("passes although the server's first reply was different")
			}
		})
	}
}

// alterations returns copies of a scenario, each with one expectation changed, by where
// it is.
func (s *scenario) alterations() map[string]*scenario {
	all := map[string]*scenario{}
	for i := range s.Steps {
		alterSteps(fmt.Sprintf("step %d", i+1), s.Steps[i], func(at string, altered step) {
			c := s.clone()
			c.Steps[i] = altered
			all[at] = c
		})
	}
	for i := range s.Requests {
		alter(fmt.Sprintf("request %d", i+1), s.Requests[i], func(at string, altered any) {
			c := s.clone()
			c.Requests[i] = altered
			all[at] = c
		})
	}
	more := s.clone()
	more.Requests = append(more.Requests, map[string]any{})
	all["the number of requests"] = more
	return all
}

func alterSteps(at string, s step, yield func(at string, altered step)) {
	for i, one := range s.Together {
		alterSteps(fmt.Sprintf("%s, call %d", at, i+1), one, func(at string, altered step) {
			c := s
			c.Together = slices.Clone(s.Together)
			c.Together[i] = altered
			yield(at, c)
		})
	}
	if s.Together != nil {
		return
	}
	want := maps.Clone(orEmpty(asObject(s.Want)))
	if _, ok := want["error"]; !ok {
		failing := s
		failing.Want = map[string]any{"error": map[string]any{"kind": "service"}}
		yield(at+": success", failing)
	}
	alter(at, want, func(at string, altered any) {
		c := s
		c.Want = altered
		yield(at, c)
	})
}

// alter calls yield with copies of an expectation, each with one value in it changed.
func alter(at string, want any, yield func(at string, altered any)) {
	switch w := want.(type) {
	case map[string]any:
		if name, operand, ok := matcher(w); ok {
			yield(at+" "+name, alterMatcher(name, operand))
			return
		}
		for name := range w {
			alter(at+"."+name, w[name], func(at string, altered any) {
				c := maps.Clone(w)
				c[name] = altered
				yield(at, c)
			})
		}
	case []any:
		yield(at+", its length", append(slices.Clone(w), "more"))
		for i := range w {
			alter(fmt.Sprintf("%s[%d]", at, i), w[i], func(at string, altered any) {
				c := slices.Clone(w)
				c[i] = altered
				yield(at, c)
			})
		}
	case string:
		if strings.HasPrefix(w, "$") {
			yield(at, "something else")
			return
		}
		yield(at, w+"x")
	case float64:
		yield(at, w+1)
	case bool:
		yield(at, !w)
	case nil:
		yield(at, "something")
	}
}

// alterMatcher returns a matcher that fails if the given one succeeds.
func alterMatcher(name string, operand any) any {
	switch name {
	case "$atLeast":
		operand = 1e12
	case "$atMost":
		operand = -1e12
	case "$between":
		operand = []any{1e12, 2e12}
	case "$contains":
		operand = "no text contains this"
	case "$lacks":
		operand = ""
	case "$present":
		operand = !operand.(bool)
	case "$sameAs":
		name = "$differsFrom"
	case "$differsFrom":
		name = "$sameAs"
	}
	return map[string]any{name: operand}
}
