package api

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"

	"animalstore"

	"github.com/go-json-experiment/json/jsontext"
)

// maxBody is the largest request body, in bytes.
const maxBody = 1 << 20

// member is one member of a JSON object that an operation reads. Members it
// does not read are ignored.
type member struct {
	name     string
	required bool
	read     func(jsontext.Value) error
}

func required(name string, read func(jsontext.Value) error) member {
	return member{name, true, read}
}

func optional(name string, read func(jsontext.Value) error) member {
	return member{name, false, read}
}

// decode reads the request's body, an object with these members.
func decode(r *request, members ...member) error {
	body, err := readJSON(r, "application/json")
	if err != nil {
		return err
	}
	return decodeObject(body, members)
}

// decodeOptional is decode for an operation that works without a body.
func decodeOptional(r *request, members ...member) error {
	body, err := readBody(r)
	if err != nil || len(body) == 0 {
		return err // whatever type no body is said to have
	}
	if err := checkMediaType(r.Header, "application/json"); err != nil {
		return err
	}
	return decodeObject(body, members)
}

// decodePatch reads a JSON merge patch with these members, and tells which of
// them it has.
func decodePatch(r *request, members ...member) (map[string]bool, error) {
	body, err := readJSON(r, "application/json", "application/merge-patch+json")
	if err != nil {
		return nil, err
	}
	seen := make(map[string]bool, len(members))
	for i, m := range members {
		members[i].read = func(v jsontext.Value) error {
			seen[m.name] = true
			return m.read(v)
		}
	}
	return seen, decodeObject(body, members)
}

// readJSON reads a body of one of these media types.
func readJSON(r *request, accepted ...string) ([]byte, error) {
	body, err := readBody(r)
	if err != nil {
		return nil, err
	}
	return body, checkMediaType(r.Header, accepted...)
}

func readBody(r *request) ([]byte, error) {
	if r.ContentLength > maxBody {
		return nil, tooLarge()
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, animalstore.Errorf(animalstore.MalformedJSON, "the body ended early or too late: send all of it, as long as Content-Length says")
	}
	if len(body) > maxBody {
		return nil, tooLarge()
	}
	// How long a body may take is the server's affair. The work begins here.
	r.ctx.restart(handlerTimeout)
	r.body = body
	return body, nil
}

func tooLarge() error {
	return animalstore.Errorf(animalstore.PayloadTooLarge, "the body must have at most %d bytes", maxBody)
}

// checkMediaType accepts these types, said or unsaid, with no coding applied.
func checkMediaType(h http.Header, accepted ...string) error {
	if coding := h.Get("Content-Encoding"); coding != "" && !strings.EqualFold(coding, "identity") {
		return animalstore.Errorf(animalstore.UnsupportedMediaType, "Content-Encoding is not supported: send the body as plain JSON")
	}
	types := h["Content-Type"]
	if len(types) == 0 || len(types) == 1 && types[0] == "" {
		return nil
	}
	mediaType, _, err := mime.ParseMediaType(types[0])
	if len(types) > 1 || err != nil || !slices.Contains(accepted, mediaType) {
		return animalstore.Errorf(animalstore.UnsupportedMediaType, "the body must be JSON: send it with Content-Type: %s", strings.Join(accepted, " or "))
	}
	return nil
}

// decodeObject reads one JSON object and nothing after it. What is not JSON is
// told from what is not valid, and the message names what was wrong.
func decodeObject(body []byte, members []member) error {
	if len(bytes.TrimLeft(body, " \t\r\n")) == 0 {
		return malformed("the body is empty: send a JSON object")
	}
	// Over a bytes.Buffer what the decoder returns stays intact while it reads
	// on; over any other reader it does not.
	d := jsontext.NewDecoder(bytes.NewBuffer(body))
	// The whole text is read before any member is looked at, so that broken
	// JSON is malformed_json whatever its members hold.
	object, err := d.ReadValue()
	if err != nil {
		return malformed(explainJSON(err))
	}
	if _, err := d.ReadToken(); err != io.EOF {
		return malformed(fmt.Sprintf("the body has something after the JSON object, at byte %d: send one object alone", d.InputOffset()))
	}
	if object.Kind() != '{' {
		return malformed("the body is not a JSON object: send one in braces")
	}
	if err := readMembers(object, members); err != nil {
		return animalstore.Errorf(animalstore.ValidationFailed, "%v", err)
	}
	return nil
}

// readMembers reads the members of an object that is known to be well-formed.
func readMembers(object jsontext.Value, members []member) error {
	d := jsontext.NewDecoder(bytes.NewBuffer(object))
	d.ReadToken() // the brace
	seen := make([]bool, len(members))
	for d.PeekKind() == '"' {
		token, _ := d.ReadToken()
		name := token.String() // before the token is void, which the next read makes it
		value, _ := d.ReadValue()
		i := slices.IndexFunc(members, func(m member) bool { return m.name == name })
		if i < 0 {
			continue
		}
		seen[i] = true
		if err := members[i].read(value); err != nil {
			return within(name, err)
		}
	}
	for i, m := range members {
		if m.required && !seen[i] {
			return within(m.name, errors.New("is required: the body lacks it"))
		}
	}
	return nil
}

// memberError tells which member is wrong, by its path from the outermost object.
type memberError struct {
	path   string
	reason error
}

func (e *memberError) Error() string { return e.path + " " + e.reason.Error() }

// within places an error in the member called name.
func within(name string, err error) error {
	if inner, ok := err.(*memberError); ok {
		return &memberError{name + "." + inner.path, inner.reason}
	}
	return &memberError{name, err}
}

func malformed(message string) error {
	return animalstore.Errorf(animalstore.MalformedJSON, "%s", message)
}

// explainJSON says what is wrong with a text without quoting it.
func explainJSON(err error) string {
	var syntax *jsontext.SyntacticError
	if !errors.As(err, &syntax) {
		return "the body is not valid JSON"
	}
	switch {
	case errors.Is(err, jsontext.ErrDuplicateName):
		return fmt.Sprintf("the body has two members of the same name, the second at byte %d: send each once", syntax.ByteOffset)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return "the body ends in the middle of its JSON: send all of it"
	}
	return fmt.Sprintf("the body is not valid JSON in UTF-8 at byte %d", syntax.ByteOffset)
}

// readString reads a JSON string into dst.
func readString(dst *string) func(jsontext.Value) error {
	return func(v jsontext.Value) error {
		if v.Kind() != '"' {
			return errors.New("must be a string")
		}
		s, err := jsontext.AppendUnquote(nil, v)
		*dst = string(s)
		return err
	}
}

// readInt64 reads a JSON number that is an integer into dst.
func readInt64(dst *int64) func(jsontext.Value) error {
	return func(v jsontext.Value) error {
		if v.Kind() != '0' {
			return errors.New("must be an integer")
		}
		n, err := parseInteger(v)
		*dst = n
		return err
	}
}

func readPetStatus(dst *animalstore.PetStatus) func(jsontext.Value) error {
	return readStatus(dst, animalstore.ParsePetStatus, animalstore.PetStatuses)
}

// readStatus reads a JSON string that parse knows into dst.
func readStatus[S ~string](dst *S, parse func(string) (S, bool), all []S) func(jsontext.Value) error {
	return func(v jsontext.Value) error {
		var s string
		if readString(&s)(v) == nil {
			if status, ok := parse(s); ok {
				*dst = status
				return nil
			}
		}
		return fmt.Errorf("must be one of %s", join(all))
	}
}

// readPositive reads a JSON number that is a positive integer into dst.
func readPositive(dst *int64) func(jsontext.Value) error {
	return func(v jsontext.Value) error {
		if err := readInt64(dst)(v); err != nil {
			return err
		}
		if *dst <= 0 {
			return errors.New("must be a positive integer")
		}
		return nil
	}
}

// readObject reads an object with these members.
func readObject(members ...member) func(jsontext.Value) error {
	return func(v jsontext.Value) error {
		if v.Kind() != '{' {
			return errors.New("must be an object")
		}
		return readMembers(v, members)
	}
}

// stringsOf reads an array of strings.
func stringsOf(v jsontext.Value) ([]string, error) {
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
		var s string
		if err := readString(&s)(item); err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}

func join[S ~string](all []S) string {
	var b strings.Builder
	for i, s := range all {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(string(s))
	}
	return b.String()
}
