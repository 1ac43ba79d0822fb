package api_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemas are the schemas of responseDocument that were needed, compiled. kin-openapi
// would compile one again for each value, which takes most of the time of a check.
var schemas = struct {
	sync.Mutex
	compiled map[*openapi3.Schema]*jsonschema.Schema
}{compiled: map[*openapi3.Schema]*jsonschema.Schema{}}

// compile returns a schema of responseDocument, compiled.
func compile(schema *openapi3.Schema) *jsonschema.Schema {
	schemas.Lock()
	defer schemas.Unlock()
	if schemas.compiled[schema] == nil {
		// References to components lead to these beside the schema.
		text := must(json.Marshal(schema))
		resource := must(jsonschema.UnmarshalJSON(bytes.NewReader(text))).(map[string]any)
		resource["components"] = components()
		c := jsonschema.NewCompiler()
		c.DefaultDraft(jsonschema.Draft2020)
		c.AssertFormat()
		c.RegisterFormat(&jsonschema.Format{Name: "int64", Validate: isInt64})
		if err := c.AddResource("schema.json", resource); err != nil {
			panic(err)
		}
		schemas.compiled[schema] = must(c.Compile("schema.json"))
	}
	return schemas.compiled[schema]
}

var components = sync.OnceValue(func() any {
	return must(jsonschema.UnmarshalJSON(bytes.NewReader(must(json.Marshal(responseDocument().Components)))))
})

func isInt64(v any) error {
	if n, ok := v.(json.Number); ok {
		_, err := n.Int64()
		return err
	}
	return nil
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

// checkBody holds a JSON text to a schema.
func checkBody(body []byte, schema *openapi3.Schema) error {
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err != nil {
		return err
	}
	return compile(schema).Validate(value)
}

// checkHeader holds the fields of a header to those that the document describes.
func checkHeader(header http.Header, described openapi3.Headers) error {
	var wrong []error
	for name, field := range described {
		text, present := header[http.CanonicalHeaderKey(name)]
		switch {
		case !present && field.Value.Required:
			wrong = append(wrong, fmt.Errorf("%s: want it in the header", name))
		case present:
			var value any = text[0]
			if _, err := strconv.ParseInt(text[0], 10, 64); err == nil && field.Value.Schema.Value.Type.Is("integer") {
				value = json.Number(text[0])
			}
			if err := compile(field.Value.Schema.Value).Validate(value); err != nil {
				wrong = append(wrong, fmt.Errorf("%s: %w", name, err))
			}
		}
	}
	return errors.Join(wrong...)
}
