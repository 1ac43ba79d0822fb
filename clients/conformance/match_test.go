package conformance

import (
	"encoding/json"
	"fmt"
	"math"
	"net/url"
	"reflect"
	"slices"
	"strings"
)

// match compares a value with what a scenario wants and returns the differences.
// Objects may have more fields than wanted; everything else must be equal. An object
// with one field that begins with $ is a matcher.
func match(at string, want, got any) (wrong []string) {
	mismatch := func() []string {
		return []string{fmt.Sprintf("%s: got %s, want %s", at, show(got), show(want))}
	}
	switch w := want.(type) {
	case map[string]any:
		if name, operand, ok := matcher(w); ok {
			if !matches(name, operand, got) {
				return mismatch()
			}
			return nil
		}
		g, ok := got.(map[string]any)
		if !ok {
			return mismatch()
		}
		for name := range w {
			wrong = append(wrong, match(at+"."+name, w[name], g[name])...)
		}
		slices.Sort(wrong)
		return wrong
	case []any:
		g, ok := got.([]any)
		if !ok || len(g) != len(w) {
			return mismatch()
		}
		for i := range w {
			wrong = append(wrong, match(fmt.Sprintf("%s[%d]", at, i), w[i], g[i])...)
		}
		return wrong
	}
	if !reflect.DeepEqual(want, got) {
		return mismatch()
	}
	return nil
}

// matcher returns the only field of an object if its name begins with $.
func matcher(object map[string]any) (name string, operand any, ok bool) {
	if len(object) != 1 {
		return "", nil, false
	}
	for name, operand = range object {
	}
	return name, operand, strings.HasPrefix(name, "$")
}

// matches applies a matcher. "$sameAs" and "$differsFrom" are replaced before.
func matches(name string, operand, got any) bool {
	switch name {
	case "$atLeast", "$atMost":
		g, isNumber := got.(float64)
		limit, _ := operand.(float64)
		return isNumber && (name == "$atLeast" && g >= limit || name == "$atMost" && g <= limit)
	case "$between":
		limits, _ := operand.([]any)
		g, isNumber := got.(float64)
		return isNumber && len(limits) == 2 && g >= limits[0].(float64) && g <= limits[1].(float64)
	case "$contains", "$lacks":
		text, isText := got.(string)
		if !isText {
			text = show(got)
		}
		text = strings.ToLower(text)
		for _, part := range parts(operand) {
			if strings.Contains(text, strings.ToLower(part)) != (name == "$contains") {
				return false
			}
		}
		return true
	case "$present":
		return (got != nil) == operand.(bool)
	case "$not":
		return !reflect.DeepEqual(got, operand)
	}
	panic(fmt.Sprintf("unknown matcher %s", name))
}

func parts(operand any) (texts []string) {
	list, isList := operand.([]any)
	if !isList {
		list = []any{operand}
	}
	for _, one := range list {
		texts = append(texts, one.(string))
	}
	return texts
}

func show(value any) string {
	text, err := json.Marshal(value)
	if err != nil {
		return fmt.Sprint(value)
	}
	if len(text) > 2000 {
		return string(text[:2000]) + "…"
	}
	return string(text)
}

// canonical returns a path with its query in a fixed order.
func canonical(path, query string) string {
	values, err := url.ParseQuery(query)
	if err != nil || len(values) == 0 {
		return path
	}
	return path + "?" + values.Encode()
}

// matchRequests compares the requests of a run with what a scenario wants: exactly
// these, in this order.
func matchRequests(want []any, got []map[string]any) (wrong []string) {
	if len(want) != len(got) {
		wrong = append(wrong, fmt.Sprintf("got %d requests, want %d: %s", len(got), len(want), show(got)))
	}
	for i := range min(len(want), len(got)) {
		wrong = append(wrong, match(fmt.Sprintf("request %d", i+1), prepareRequest(want[i], got), got[i])...)
	}
	return wrong
}

// prepareRequest brings an expected request into the form of a recorded one: lower-case
// names of headers, the query in order, references to other requests replaced.
func prepareRequest(want any, got []map[string]any) any {
	w, _ := want.(map[string]any)
	prepared := map[string]any{}
	for name, value := range w {
		switch name {
		case "path":
			if text, isText := value.(string); isText {
				path, query, _ := strings.Cut(text, "?")
				value = canonical(path, query)
			}
		case "headers":
			headers := map[string]any{}
			for name, value := range value.(map[string]any) {
				name = strings.ToLower(name)
				headers[name] = referTo(value, got, func(r map[string]any) any { return r["headers"].(map[string]any)[name] })
			}
			value = headers
		case "text":
			value = referTo(value, got, func(r map[string]any) any { return r["text"] })
		}
		prepared[name] = value
	}
	return prepared
}

// referTo replaces a reference to a part of another request with a comparison with that
// part.
func referTo(value any, got []map[string]any, part func(request map[string]any) any) any {
	object, _ := value.(map[string]any)
	name, operand, ok := matcher(object)
	if !ok || name != "$sameAs" && name != "$differsFrom" {
		return value
	}
	number := int(operand.(float64))
	if number < 1 || number > len(got) {
		return math.NaN() // equal to nothing
	}
	other := part(got[number-1])
	if name == "$sameAs" {
		return other
	}
	return map[string]any{"$not": other}
}
