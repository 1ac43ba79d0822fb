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
// before it reads any field, so that broken JSON is always malformed_json, whatever the
// values of its fields.
func decodeObject(text []byte, fields ...field) error {
	values, err := scanObject(text, fields)
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
		return &fieldError{name + "." + inner.path, inner.reason}
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

// readOneOf reads a string that parse accepts; values are those it accepts.
func readOneOf[S ~string](v jsontext.Value, parse func(string) (S, bool), values []S) (S, error) {
	if s, err := readString(v); err == nil {
		if value, ok := parse(s); ok {
			return value, nil
		}
	}
	return "", errors.New(animalstore.MustBeOneOf(values))
}

func readStrings(v jsontext.Value) ([]string, error) {
	if v.Kind() != '[' {
		return nil, errors.New("must be an array of strings")
	}
	d := jsontext.NewDecoder(bytes.NewBuffer(v))
	d.ReadToken() // the bracket
	var all []string
	for d.PeekKind() != ']' {
		item, err := d.ReadValue()
		if err != nil {
			return nil, err
		}
		s, err := readString(item)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}
