package strictjson

import (
	"bytes"
	"errors"
	"io"
	"slices"

	"github.com/go-json-experiment/json/jsontext"
)

// maxFields is how many fields all objects in a text may have together. To find
// duplicates, the decoder remembers the names in each object, which makes fields the
// most expensive part of a text.
const maxFields = 1000

var errTooManyFields = errors.New("too many fields")

// scanner reads a text once, token by token, and counts its fields.
type scanner struct {
	*jsontext.Decoder
	fields int
}

// scanObject checks that a text is one object and returns the text of each field, nil
// for absent ones.
func scanObject(text []byte, fields []field) ([]jsontext.Value, error) {
	// The decoder avoids copying the text only if it reads from a bytes.Buffer.
	s := &scanner{Decoder: jsontext.NewDecoder(bytes.NewBuffer(text))}
	kind := s.PeekKind()
	values := make([]jsontext.Value, len(fields))
	var err error
	if kind == '{' {
		err = s.scanFields(text, fields, values)
	} else {
		err = s.skipValue()
	}
	if err == io.EOF {
		return nil, malformed("the body is empty: send a JSON object")
	}
	if err != nil {
		return nil, explainSyntax(err)
	}
	if _, err := s.ReadToken(); err != io.EOF {
		return nil, malformed("there is something after the JSON object, at byte %d: send one object only", s.InputOffset())
	}
	if kind != '{' {
		return nil, malformed("this is not a JSON object: send one in braces")
	}
	return values, nil
}

// scanFields scans the outermost object.
func (s *scanner) scanFields(text []byte, fields []field, values []jsontext.Value) error {
	if _, err := s.ReadToken(); err != nil { // the brace
		return err
	}
	for s.PeekKind() == '"' {
		token, err := s.readName()
		if err != nil {
			return err
		}
		name := token.String() // the next read invalidates the token
		start := s.InputOffset()
		if err := s.skipValue(); err != nil {
			return err
		}
		if i := slices.IndexFunc(fields, func(f field) bool { return f.name == name }); i >= 0 {
			values[i] = bytes.TrimLeft(text[start:s.InputOffset()], ": \t\r\n")
		}
	}
	_, err := s.ReadToken() // the closing brace, if nothing is wrong
	return err
}

// skipValue scans the next value and everything inside it.
func (s *scanner) skipValue() error {
	for outside := s.StackDepth(); ; {
		read := s.ReadToken
		if kind, n := s.StackIndex(s.StackDepth()); kind == '{' && n%2 == 0 && s.PeekKind() == '"' && s.StackDepth() > outside {
			read = s.readName
		}
		if _, err := read(); err != nil {
			return err
		}
		if s.StackDepth() <= outside {
			return nil
		}
	}
}

func (s *scanner) readName() (jsontext.Token, error) {
	if s.fields++; s.fields > maxFields {
		return jsontext.Token{}, errTooManyFields
	}
	return s.ReadToken()
}

// maxDepth is how many arrays and objects jsontext accepts inside one another.
// tooDeep is its error for more, which it doesn't export.
const (
	maxDepth = 10_000
	tooDeep  = "exceeded max depth"
)

func explainSyntax(err error) error {
	var syntax *jsontext.SyntacticError
	switch {
	case err == errTooManyFields:
		return malformed("the JSON has too many fields: send at most %d, in all objects together", maxFields)
	case !errors.As(err, &syntax):
		return malformed("this is not valid JSON")
	case errors.Is(err, jsontext.ErrDuplicateName):
		return malformed("there are two fields of the same name, the second at byte %d: send each once", syntax.ByteOffset)
	case syntax.Err != nil && syntax.Err.Error() == tooDeep:
		return malformed("the JSON is nested too deeply at byte %d: use at most %d levels", syntax.ByteOffset, maxDepth)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return malformed("the JSON ends in the middle: send all of it")
	}
	return malformed("this is not valid JSON in UTF-8 at byte %d", syntax.ByteOffset)
}
