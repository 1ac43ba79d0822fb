package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// scenario is one promise of all clients. README.md describes the format.
type scenario struct {
	Name     string            `json:"name"`
	Promise  string            `json:"promise"`
	Client   map[string]any    `json:"client"`
	Steps    []step            `json:"steps"`
	Server   []reply           `json:"server"`
	Requests []any             `json:"requests"`
	Except   map[string]string `json:"except"` // the reason, by the name of a client

	file string
}

// step is one call, or several at once.
type step struct {
	Call     string         `json:"call,omitempty"`
	Args     map[string]any `json:"args,omitempty"`
	Options  map[string]any `json:"options,omitempty"`
	Together []step         `json:"together,omitempty"`
	Save     string         `json:"save,omitempty"`
	Want     any            `json:"want,omitempty"`
}

// reply is what the scripted server does with one request.
type reply struct {
	Status  int            `json:"status"`
	Headers map[string]any `json:"headers"` // a string, a list of strings, or null to leave out a default
	Body    any            `json:"body"`
	Text    string         `json:"text"`
	Stream  []any          `json:"stream"`  // ids of events, and text as it is sent
	Open    bool           `json:"open"`    // send nothing more, but don't end the response
	Padding int            `json:"padding"` // this many spaces instead of a body
	Delay   int            `json:"delay"`   // milliseconds
	Awaits  int            `json:"awaits"`  // wait until there were this many requests
	Cut     string         `json:"cut"`     // "before", "headers", "body" or "stall"
	Hang    bool           `json:"hang"`
	Times   int            `json:"times"` // 0 means once
}

const scenariosDir = "../scenarios"

// loadScenarios reads all scenarios. A field that isn't in the format is an error.
func loadScenarios(t testing.TB) (all []scenario) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(scenariosDir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios in %s: %v", scenariosDir, err)
	}
	seen := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var content struct {
			Args      map[string]any `json:"args"`
			Scenarios []scenario     `json:"scenarios"`
		}
		var into any = &content.Scenarios
		if text[0] == '{' {
			into = &content
		}
		if err := decodeStrictly(text, into); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for _, s := range content.Scenarios {
			addArgs(s.Steps, content.Args)
			s.file = strings.TrimSuffix(filepath.Base(file), ".json")
			if s.Name == "" || s.Promise == "" || len(s.Steps) == 0 || seen[s.Name] {
				t.Fatalf("%s: scenario %q needs a unique name, a promise and steps", file, s.Name)
			}
			seen[s.Name] = true
			all = append(all, s)
		}
	}
	return all
}

// addArgs adds the common arguments of a file to steps.
func addArgs(steps []step, common map[string]any) {
	for i := range steps {
		steps[i].Args = patched(common, steps[i].Args)
		addArgs(steps[i].Together, common)
	}
}

// patched returns a copy of an object with a merge patch applied: null removes a field.
func patched(object, patch map[string]any) map[string]any {
	result := maps.Clone(orEmpty(object))
	for name, value := range patch {
		fields, isObject := value.(map[string]any)
		switch {
		case isObject:
			result[name] = patched(asObject(result[name]), fields)
		case value == nil:
			delete(result, name)
		default:
			result[name] = value
		}
	}
	return result
}

func decodeStrictly(text []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	return d.Decode(into)
}

// places are the values that a scenario doesn't know before it runs, by their names in
// braces, such as {server}.
type places map[string]string

// fill returns a copy of a value from a scenario with the places filled in.
func (p places) fill(value any) any {
	switch v := value.(type) {
	case string:
		for name, text := range p {
			v = strings.ReplaceAll(v, "{"+name+"}", text)
		}
		return v
	case []any:
		filled := make([]any, len(v))
		for i := range v {
			filled[i] = p.fill(v[i])
		}
		return filled
	case map[string]any:
		filled := make(map[string]any, len(v))
		for name := range v {
			filled[name] = p.fill(v[name])
		}
		return filled
	}
	return value
}

var momentPattern = regexp.MustCompile(`\{now([+-]\d+)?\}`)

// fillMoments replaces {now+60} with Unix seconds.
func fillMoments(text string, now time.Time) string {
	return momentPattern.ReplaceAllStringFunc(text, func(place string) string {
		seconds, _ := strconv.ParseInt(momentPattern.FindStringSubmatch(place)[1], 10, 64)
		return strconv.FormatInt(now.Unix()+seconds, 10)
	})
}

// resolve replaces strings like "$pet.result.id" with values of replies that earlier
// steps saved.
func resolve(value any, saved map[string]any) (any, error) {
	switch v := value.(type) {
	case string:
		name, isPlace := strings.CutPrefix(v, "$")
		if !isPlace {
			return v, nil
		}
		var at any = saved
		for part := range strings.SplitSeq(name, ".") {
			if i, err := strconv.Atoi(part); err == nil {
				list, _ := at.([]any)
				if i >= len(list) {
					return nil, fmt.Errorf("%s: the list has %d entries", v, len(list))
				}
				at = list[i]
				continue
			}
			object, _ := at.(map[string]any)
			next, ok := object[part]
			if !ok {
				return nil, fmt.Errorf("%s: no step saved %q", v, part)
			}
			at = next
		}
		return at, nil
	case []any:
		resolved := make([]any, len(v))
		for i := range v {
			var err error
			if resolved[i], err = resolve(v[i], saved); err != nil {
				return nil, err
			}
		}
		return resolved, nil
	case map[string]any:
		resolved := make(map[string]any, len(v))
		for name := range v {
			var err error
			if resolved[name], err = resolve(v[name], saved); err != nil {
				return nil, err
			}
		}
		return resolved, nil
	}
	return value, nil
}
