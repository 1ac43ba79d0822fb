package openapi

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"testing"

	"github.com/oasdiff/yaml3"
)

var update = flag.Bool("update", false, "rewrite openapi.json from openapi.yaml")

func TestJSONIsTheYAML(t *testing.T) {
	want, err := toJSON(YAML)
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("openapi.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if !bytes.Equal(JSON, want) {
		t.Error("openapi.json differs from openapi.yaml: run go test ./openapi -update")
	}
}

// toJSON renders a YAML document as indented JSON with its fields in the same
// order.
func toJSON(document []byte) ([]byte, error) {
	var root yaml.Node
	if err := yaml.Unmarshal(document, &root); err != nil {
		return nil, err
	}
	var compact bytes.Buffer
	if err := appendNode(&compact, root.Content[0]); err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := json.Indent(&out, compact.Bytes(), "", "  "); err != nil {
		return nil, err
	}
	out.WriteByte('\n')
	return out.Bytes(), nil
}

func appendNode(out *bytes.Buffer, node *yaml.Node) error {
	switch node.Kind {
	case yaml.MappingNode:
		return appendMapping(out, node)
	case yaml.SequenceNode:
		out.WriteByte('[')
		for i, item := range node.Content {
			if i > 0 {
				out.WriteByte(',')
			}
			if err := appendNode(out, item); err != nil {
				return err
			}
		}
		out.WriteByte(']')
		return nil
	case yaml.ScalarNode:
		var value any
		if err := node.Decode(&value); err != nil {
			return err
		}
		return appendValue(out, value)
	}
	return fmt.Errorf("line %d: JSON has no equivalent for an anchor", node.Line)
}

func appendMapping(out *bytes.Buffer, node *yaml.Node) error {
	out.WriteByte('{')
	for i := 0; i < len(node.Content); i += 2 {
		if i > 0 {
			out.WriteByte(',')
		}
		if err := appendValue(out, node.Content[i].Value); err != nil {
			return err
		}
		out.WriteByte(':')
		if err := appendNode(out, node.Content[i+1]); err != nil {
			return err
		}
	}
	out.WriteByte('}')
	return nil
}

// appendValue writes a scalar without escaping HTML, because links contain angle
// brackets.
func appendValue(out *bytes.Buffer, value any) error {
	encoder := json.NewEncoder(out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return err
	}
	out.Truncate(out.Len() - 1) // Encode ends with a newline
	return nil
}
