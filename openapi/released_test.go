package openapi

import (
	"flag"
	"os"
	"sync"
	"testing"
)

var release = flag.Bool("release", false, "copy openapi.yaml to the released document, unless it breaks clients")

const releasedFile = "released/v1.yaml"

// today is openapi.yaml.
var today = sync.OnceValue(func() object {
	root, err := tree(YAML)
	if err != nil {
		panic(err)
	}
	return root
})

// TestNothingBreaks checks that clients of the released document keep working.
func TestNothingBreaks(t *testing.T) {
	text, err := os.ReadFile(releasedFile)
	if err != nil {
		t.Fatal(err)
	}
	released, err := tree(text)
	if err != nil {
		t.Fatal(err)
	}
	wrong := breaking(released, today())
	for _, w := range wrong {
		t.Errorf("%s (compared with %s)", w, releasedFile)
	}
	if *release && len(wrong) == 0 {
		if err := os.WriteFile(releasedFile, YAML, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
