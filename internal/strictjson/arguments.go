package strictjson

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"

	"animalstore"

	"github.com/go-json-experiment/json/jsontext"
)

// Arguments are the fields of a JSON object, read one at a time. The methods remember the
// first error, so that it is enough to check [Arguments.Err] once. Absent fields are nil.
type Arguments struct {
	text   []byte
	values map[string]json.RawMessage
	err    error
}

// ReadArguments reads a JSON object that may have only the fields with these names. An
// empty text is an empty object.
func ReadArguments(text []byte, names []string) *Arguments {
	if len(text) == 0 {
		text = []byte("{}")
	}
	a := &Arguments{text: text}
	if _, err := scanObject(text, nil, math.MaxInt); err != nil {
		a.err = err
		return a
	}
	if err := json.Unmarshal(text, &a.values); err != nil {
		a.fail(err)
	}
	if err := checkNames(a.values, "", names); err != nil {
		a.fail(err)
	}
	return a
}

func (a *Arguments) fail(err error) {
	if a.err == nil {
		a.err = animalstore.Errorf(animalstore.ValidationFailed, "%v", err)
	}
}

// Err is the first error so far.
func (a *Arguments) Err() error { return a.err }

// String returns a text.
func (a *Arguments) String(name string) *string { return argument(a, name, readString) }

// NonEmpty returns a text that isn't empty.
func (a *Arguments) NonEmpty(name string) *string {
	return argument(a, name, func(v jsontext.Value) (string, error) {
		s, err := readString(v)
		if err == nil && s == "" {
			err = errors.New("must not be empty")
		}
		return s, err
	})
}

// Visible returns a text of 1 to most visible ASCII characters, which can be sent in a header.
func (a *Arguments) Visible(name string, most int) *string {
	return argument(a, name, func(v jsontext.Value) (string, error) {
		s, err := readString(v)
		invisible := func(r rune) bool { return r <= ' ' || r > '~' }
		if err == nil && (s == "" || len(s) > most || strings.ContainsFunc(s, invisible)) {
			err = fmt.Errorf("must have 1 to %d visible ASCII characters and no spaces", most)
		}
		return s, err
	})
}

// Integer returns an integer.
func (a *Arguments) Integer(name string) *int64 { return argument(a, name, readInteger) }

// Positive returns a positive integer.
func (a *Arguments) Positive(name string) *int64 { return argument(a, name, readPositive) }

// Time returns an instant, or the zero Time.
func (a *Arguments) Time(name string) (at animalstore.Time) {
	if given := argument(a, name, readTime); given != nil {
		at = *given
	}
	return at
}

// Require returns a positive integer that must be present.
func (a *Arguments) Require(name string) int64 {
	n := a.Positive(name)
	if n == nil {
		a.fail(inField(name, errors.New("is required")))
		return 0
	}
	return *n
}

// RequireInteger returns an integer that must be present.
func (a *Arguments) RequireInteger(name string) int64 {
	n := a.Integer(name)
	if n == nil {
		a.fail(inField(name, errors.New("is required")))
		return 0
	}
	return *n
}

// Integers returns a list of 1 to most positive integers.
func (a *Arguments) Integers(name string, most int) []int64 { return list(a, name, most, readPositive) }

// CheckItems checks that the objects in a list have only the fields with these names. It
// leaves other mistakes to [Decode].
func (a *Arguments) CheckItems(name string, names []string) {
	items, err := readItems(jsontext.Value(a.values[name]))
	if a.err != nil || err != nil {
		return
	}
	for i, item := range items {
		var fields map[string]json.RawMessage
		if json.Unmarshal(item, &fields) != nil {
			return
		}
		if err := checkNames(fields, name+"["+strconv.Itoa(i)+"].", names); err != nil {
			a.fail(err)
			return
		}
	}
}

// Choice returns one of the values.
func Choice[S ~string](a *Arguments, name string, values []S) *S {
	return argument(a, name, readOneOf(values))
}

// Choices returns a list of some of the values, at least one.
func Choices[S ~string](a *Arguments, name string, values []S) []S {
	return list(a, name, math.MaxInt, readOneOf(values))
}

// Decode reads all arguments as one of the types of the domain, which ignores fields that
// it doesn't have.
func Decode[T any](a *Arguments, decode func([]byte) (T, error)) T {
	var value T
	if a.err == nil {
		value, a.err = decode(a.text)
	}
	return value
}

func argument[T any](a *Arguments, name string, read func(jsontext.Value) (T, error)) *T {
	text := a.values[name]
	if a.err != nil || text == nil {
		return nil
	}
	value, err := read(jsontext.Value(text))
	if err != nil {
		a.fail(inField(name, err))
		return nil
	}
	return &value
}

func list[T any](a *Arguments, name string, most int, read func(jsontext.Value) (T, error)) []T {
	values := argument(a, name, func(v jsontext.Value) ([]T, error) {
		items, err := readItems(v)
		switch {
		case err == nil && len(items) == 0:
			err = errors.New("must have at least one item")
		case len(items) > most:
			err = fmt.Errorf("must have at most %d items", most)
		}
		values := make([]T, len(items))
		for i := 0; i < len(items) && err == nil; i++ {
			values[i], err = read(items[i])
		}
		return values, err
	})
	if values == nil {
		return nil
	}
	return *values
}
