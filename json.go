package animalstore

import (
	"bytes"
	"encoding/json"
)

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
