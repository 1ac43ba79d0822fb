package strictjson

import (
	"errors"

	"animalstore"

	"github.com/go-json-experiment/json/jsontext"
)

// maxEntries is how many entries all arrays in a message may have together. The library
// that serves it decodes it several times.
const maxEntries = 10_000

// CheckMessage returns the method of a JSON-RPC message, or "" for a response. The error
// has code malformed_json if the text isn't one JSON object within the bounds of messages,
// and validation_failed if the object isn't a message.
func CheckMessage(text []byte) (method string, err error) {
	anything := func(jsontext.Value) error { return nil }
	fields := []field{
		required("jsonrpc", new(string), readOneOf([]string{"2.0"})),
		{name: "id", read: checkID},
		optional("method", &method, readString),
		{name: "result", read: anything},
		{name: "error", read: anything},
	}
	values, err := scanObject(text, fields, maxEntries)
	if err != nil {
		return "", err
	}
	err = readFields(values, fields)
	isRequest, isResponse := values[2] != nil, values[3] != nil || values[4] != nil
	if err == nil && isRequest == isResponse {
		err = errors.New("a message has either a method, or a result or error; names are case-sensitive")
	}
	if err != nil {
		return "", animalstore.Errorf(animalstore.ValidationFailed, "%v", err)
	}
	return method, nil
}

// checkID checks that an id is a text, or a number that every language reads and writes
// exactly.
func checkID(v jsontext.Value) error {
	const maxID = 1<<53 - 1
	if v.Kind() == '"' {
		return nil
	}
	if n, err := readInteger(v); err != nil || n < -maxID || n > maxID {
		return errors.New("must be a string, or an integer between -9007199254740991 and 9007199254740991")
	}
	return nil
}
