package animalstore

import (
	"bytes"
	"encoding/json"
	"strings"
)

// OptionalText is a text that is null in JSON if it is empty.
type OptionalText string

// MarshalJSON writes null for an empty text.
func (t OptionalText) MarshalJSON() ([]byte, error) {
	if t == "" {
		return []byte("null"), nil
	}
	return EncodeJSON(string(t))
}

// JoinNames lists names in a message: "a, b, c".
func JoinNames[S ~string](names []S) string {
	var b strings.Builder
	for i, name := range names {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(name))
	}
	return b.String()
}

// JoinOr lists alternatives in a message: "a", "a or b", "a, b or c".
func JoinOr[S ~string](names []S) string {
	last := len(names) - 1
	if last < 1 {
		return JoinNames(names)
	}
	return JoinNames(names[:last]) + " or " + string(names[last])
}

// MustBeOneOf is what a message says after the name of a field or parameter
// whose value is not one of a fixed set: "must be one of a, b, c".
func MustBeOneOf[S ~string](values []S) string { return "must be one of " + JoinNames(values) }

// EncodeJSON returns v as the service writes it in responses, events and files: on one
// line, without the escapes for HTML that [json.Marshal] adds.
func EncodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}
