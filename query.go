package animalstore

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Parameters reads the parameters of a URL. After the first one that is wrong, Err
// returns what is wrong with it.
type Parameters struct {
	values url.Values
	err    error
}

// NewParameters returns a reader of parameters.
func NewParameters(values url.Values) *Parameters { return &Parameters{values: values} }

// Err returns the error for the first wrong parameter, with the code invalid_parameter.
func (p *Parameters) Err() error { return p.err }

// Fail makes the error say what a parameter must be.
func (p *Parameters) Fail(name, want string) {
	if p.err == nil {
		p.err = Errorf(InvalidParameter, "%s %s", name, want)
	}
}

// Text returns a parameter, and whether it is given.
func (p *Parameters) Text(name string) (text string, given bool) {
	values := p.values[name]
	switch len(values) {
	case 0:
		return "", false
	case 1:
		return values[0], true
	}
	p.Fail(name, "is given "+strconv.Itoa(len(values))+" times: give it once")
	return "", false
}

// Integer returns an integer from least to most, and absent if it isn't given.
func (p *Parameters) Integer(name string, least, most, absent int64) int64 {
	text, given := p.Text(name)
	if !given {
		return absent
	}
	n, ok := ParseInteger(text)
	if !ok || n < least || n > most {
		p.Fail(name, "must be an integer from "+strconv.FormatInt(least, 10)+" to "+strconv.FormatInt(most, 10))
	}
	return n
}

// anyInteger returns an integer, or nil.
func (p *Parameters) anyInteger(name string) *int64 {
	text, given := p.Text(name)
	if !given {
		return nil
	}
	n, ok := ParseInteger(text)
	if !ok {
		p.Fail(name, "must be a 64-bit integer")
	}
	return &n
}

// id returns the id of a resource, or 0.
func (p *Parameters) id(name string) int64 {
	text, given := p.Text(name)
	id, ok := ParseID(text)
	if given && !ok {
		p.Fail(name, "must be a positive integer")
	}
	return id
}

// maxIDs is how many ids a list can be restricted to.
const maxIDs = 100

// ids returns a list of ids, or nil. Clients write it as id=1,2 or as id=1&id=2,
// regardless of the document.
func (p *Parameters) ids(name string) (ids []int64) {
	for _, values := range p.values[name] {
		for text := range strings.SplitSeq(values, ",") {
			id, ok := ParseID(text)
			if !ok || len(ids) == maxIDs {
				p.Fail(name, "must be a comma-separated list of 1 to 100 positive integers")
				return nil
			}
			ids = append(ids, id)
		}
	}
	return ids
}

// line returns a text of 1 to maxLength characters, or "".
func (p *Parameters) line(name string, maxLength int) string {
	text, given := p.Text(name)
	if n := utf8.RuneCountInString(text); given && (n < 1 || n > maxLength || !IsText(text)) {
		p.Fail(name, "must have 1 to "+strconv.Itoa(maxLength)+" characters, in UTF-8 and without U+0000")
	}
	return text
}

// time returns an instant, or the zero Time.
func (p *Parameters) time(name string) Time {
	text, given := p.Text(name)
	if !given {
		return Time{}
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil || at.UnixMilli() < 0 {
		p.Fail(name, "must be a time like 2026-11-15T10:00:00Z, since 1970")
	}
	return AtMilli(max(1, at.UnixMilli())) // 0 would be no time
}

// IsText reports whether every database can store and compare s as text.
func IsText(s string) bool { return utf8.ValidString(s) && !strings.Contains(s, "\x00") }

// oneOf returns one of some values, or "".
func oneOf[S ~string](p *Parameters, name string, values ...S) S {
	text, given := p.Text(name)
	if given && !slices.Contains(values, S(text)) {
		p.Fail(name, MustBeOneOf(values))
	}
	return S(text)
}

// someOf returns those of some values that a comma-separated list names, or nil.
func someOf[S ~string](p *Parameters, name string, values []S) (some []S) {
	list, given := p.Text(name)
	if !given {
		return nil
	}
	for text := range strings.SplitSeq(list, ",") {
		if !slices.Contains(values, S(text)) {
			p.Fail(name, MustBeOneOf(values)+", or several of them, separated by commas")
		}
		if !slices.Contains(some, S(text)) {
			some = append(some, S(text))
		}
	}
	return some
}

// ParseID reads a positive int64 in canonical form.
func ParseID(text string) (int64, bool) {
	id, ok := ParseInteger(text)
	return id, ok && id > 0
}

// ParseInteger reads an int64 in canonical form: the digits that we would write.
func ParseInteger(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && strconv.FormatInt(n, 10) == text
}

// set adds a parameter, unless it is empty.
func set[S ~string](values url.Values, name string, text S) {
	if text != "" {
		values.Set(name, string(text))
	}
}

// setID adds the id of a resource, unless it is 0.
func setID(values url.Values, name string, id int64) {
	if id != 0 {
		values.Set(name, strconv.FormatInt(id, 10))
	}
}

// setInteger adds an integer, unless it is nil.
func setInteger(values url.Values, name string, n *int64) {
	if n != nil {
		values.Set(name, strconv.FormatInt(*n, 10))
	}
}

// setIDs adds a list of ids, unless it is nil.
func setIDs(values url.Values, name string, ids []int64) {
	if ids == nil {
		return
	}
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = strconv.FormatInt(id, 10)
	}
	values.Set(name, strings.Join(texts, ","))
}

// joinList is the inverse of someOf.
func joinList[S ~string](values []S) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = string(v)
	}
	return strings.Join(texts, ",")
}
