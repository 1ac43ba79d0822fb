// Package strictjson decodes JSON from requests and import files into the types of the
// domain.
//
// It is stricter than encoding/json: field names are case-sensitive, and a
// duplicate name, invalid UTF-8, null, or text after the object is an error.
// Fields it doesn't know are ignored. Errors are [*animalstore.Error] with code
// malformed_json or validation_failed, and never quote the text.
package strictjson

import (
	"bytes"
	"errors"
	"io"
	"math"
	"math/big"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"animalstore"

	"github.com/go-json-experiment/json/jsontext"
)

// field is a field of a JSON object, and where its value goes.
type field struct {
	name     string
	required bool
	read     func(jsontext.Value) error
}

// required is a field that must be present.
func required[T any](name string, dst *T, read func(jsontext.Value) (T, error)) field {
	f := optional(name, dst, read)
	f.required = true
	return f
}

// optional is a field that leaves dst alone when it is absent.
func optional[T any](name string, dst *T, read func(jsontext.Value) (T, error)) field {
	return field{name: name, read: func(v jsontext.Value) (err error) {
		*dst, err = read(v)
		return err
	}}
}

// patched is a field of a patch: dst stays nil when it is absent.
func patched[T any](name string, dst **T, read func(jsontext.Value) (T, error)) field {
	return field{name: name, read: func(v jsontext.Value) error {
		value, err := read(v)
		*dst = &value
		return err
	}}
}

// decodeObject reads one JSON object and nothing after it. It scans the whole text
// before it reads any field, so that broken JSON is always malformed_json, regardless of
// its values.
func decodeObject(text []byte, fields ...field) error {
	values, err := scanObject(text, fields, math.MaxInt)
	if err != nil {
		return err
	}
	if err := readFields(values, fields); err != nil {
		return animalstore.Errorf(animalstore.ValidationFailed, "%v", err)
	}
	return nil
}

// readFields reads the fields from the values that scanObject returned.
func readFields(values []jsontext.Value, fields []field) error {
	for i, f := range fields {
		if values[i] == nil {
			continue
		}
		if err := f.read(values[i]); err != nil {
			return inField(f.name, err)
		}
	}
	for i, f := range fields {
		if values[i] == nil && f.required {
			return inField(f.name, errors.New("is required"))
		}
	}
	return nil
}

// fieldError says which field is wrong, by its path from the outermost object.
type fieldError struct {
	path   string
	reason error
}

func (e *fieldError) Error() string { return e.path + " " + e.reason.Error() }

func inField(name string, err error) error {
	if inner, ok := err.(*fieldError); ok {
		if !strings.HasPrefix(inner.path, "[") { // an item of an array
			name += "."
		}
		return &fieldError{name + inner.path, inner.reason}
	}
	return &fieldError{name, err}
}

func malformed(format string, args ...any) error {
	return animalstore.Errorf(animalstore.MalformedJSON, format, args...)
}

// The functions below read one value of a well-formed text.

func readString(v jsontext.Value) (string, error) {
	if v.Kind() != '"' {
		return "", errors.New("must be a string")
	}
	s, err := jsontext.AppendUnquote(nil, v)
	return string(s), err
}

func readInteger(v jsontext.Value) (int64, error) {
	if v.Kind() != '0' {
		return 0, errInteger
	}
	return ParseInteger(v)
}

func readPositive(v jsontext.Value) (int64, error) {
	n, err := readInteger(v)
	if err == nil && n <= 0 {
		err = errors.New("must be a positive integer")
	}
	return n, err
}

// readOneOf returns a function that reads one of the values, exactly as spelled here.
func readOneOf[S ~string](values []S) func(jsontext.Value) (S, error) {
	return func(v jsontext.Value) (S, error) {
		if s, err := readString(v); err == nil && slices.Contains(values, S(s)) {
			return S(s), nil
		}
		return "", errors.New(animalstore.MustBeOneOf(values))
	}
}

func readStrings(v jsontext.Value) (all []string, err error) {
	items, err := readItems(v)
	if err != nil {
		return nil, errors.New("must be an array of strings")
	}
	for _, item := range items {
		s, err := readString(item)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

// readItems returns the values in an array.
func readItems(v jsontext.Value) (items []jsontext.Value, err error) {
	if v.Kind() != '[' {
		return nil, errors.New("must be an array")
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(v))
	if _, err := d.ReadToken(); err != nil { // the bracket
		return nil, err
	}
	for d.PeekKind() != ']' {
		item, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		items = append(items, item.Clone()) // the next read invalidates it
	}
	return items, nil
}

// readObject reads the fields of an object inside another value.
func readObject(v jsontext.Value, fields []field) error {
	if v.Kind() != '{' {
		return errors.New("must be an object")
	}
	values, err := scanObject(v, fields, math.MaxInt)
	if err != nil {
		return err
	}
	return readFields(values, fields)
}

// maxFields is how many fields all objects in a text may have together. To find
// duplicates, the decoder remembers the names in each object, which makes fields the
// most expensive part of a text.
const maxFields = 1000

// scanObject checks that the text is one object within the bounds and returns the text of
// each field, nil for absent ones.
func scanObject(text []byte, fields []field, maxEntries int) ([]jsontext.Value, error) {
	values := make([]jsontext.Value, len(fields))
	// The decoder avoids copying the text only if it reads from a bytes.Buffer.
	d := jsontext.NewDecoder(bytes.NewBuffer(text))
	kind := d.PeekKind()
	names, entries := 0, 0
	read, start := -1, int64(0) // the field of the outermost object that is being read
	for first := true; first || d.StackDepth() > 0; first = false {
		depth := d.StackDepth()
		container, n := d.StackIndex(depth)
		isName := container == '{' && n%2 == 0 && d.PeekKind() == '"'
		switch {
		case isName:
			names++
		case container == '[' && d.PeekKind() != ']':
			entries++
		}
		if names > maxFields {
			return nil, malformed("the JSON has too many fields: send at most %d, in all objects together", maxFields)
		}
		if entries > maxEntries {
			return nil, malformed("the JSON has too many array entries: send at most %d, in all arrays together", maxEntries)
		}
		token, err := d.ReadToken()
		switch {
		case err == io.EOF:
			return nil, malformed("the body is empty: send a JSON object")
		case err != nil:
			return nil, syntaxError(err)
		case isName && depth == 1:
			name := token.String()
			read = slices.IndexFunc(fields, func(f field) bool { return f.name == name })
			start = d.InputOffset()
		case read >= 0 && d.StackDepth() == 1:
			values[read] = bytes.TrimLeft(text[start:d.InputOffset()], ": \t\r\n")
			read = -1
		}
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return nil, malformed("unexpected data after the JSON object, at byte %d: send one object", d.InputOffset())
	}
	if kind != '{' {
		return nil, malformed("this is not a JSON object: send one in braces")
	}
	return values, nil
}

func syntaxError(err error) error {
	var syntax *jsontext.SyntacticError
	switch {
	case !errors.As(err, &syntax):
		return malformed("this is not valid JSON")
	case errors.Is(err, jsontext.ErrDuplicateName):
		return malformed("duplicate field name at byte %d: send each field once", syntax.ByteOffset)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return malformed("the JSON is incomplete: send all of it")
	}
	return malformed("this is not valid JSON in UTF-8 at byte %d", syntax.ByteOffset)
}

var (
	errInteger  = errors.New("must be an integer")
	errFraction = errors.New("must be an integer, without a fraction")
	errRange    = errors.New("must be an integer between -9223372036854775808 and 9223372036854775807")
)

// number is what ParseInteger accepts. The bounds keep a number from taking much time: none
// that an int64 needs is longer.
var number = regexp.MustCompile(`^-?[0-9]+(\.[0-9]+)?([eE][+-]?0*[0-9]{1,2})?$`)

const maxNumber = 100

// ParseInteger parses a number whose value is an integer, in any JSON notation: 100,
// 1e2 and 100.0 are the same. It's exact, because it never converts to a float.
func ParseInteger(text []byte) (int64, error) {
	if n, err := strconv.ParseInt(string(text), 10, 64); err == nil && text[0] != '+' {
		return n, nil
	}
	if len(text) > maxNumber || !number.Match(text) {
		return 0, errInteger
	}
	value, _ := new(big.Rat).SetString(string(text))
	switch {
	case !value.IsInt():
		return 0, errFraction
	case !value.Num().IsInt64():
		return 0, errRange
	}
	return value.Num().Int64(), nil
}
