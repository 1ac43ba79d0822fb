package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// importable are the packages that Go blocks may use without importing them.
var importable = map[string]string{
	"animalstore": "animalstore", "client": "animalstore/client", "context": "context", "errors": "errors", "fmt": "fmt",
	"http": "net/http", "log": "log", "os": "os", "slices": "slices", "strings": "strings", "time": "time",
}

// fragmentMain runs the fragment that its argument names by its line.
const fragmentMain = `package main

import (
	"context"
	"fmt"
	"os"

	"animalstore/client"
)

var fragments = map[string]func(context.Context, *client.Client) error{}

func main() {
	c, err := client.New("http://127.0.0.1:8080", os.Getenv("ANIMALSTORE_API_KEY"))
	if err == nil {
		err = fragments[os.Args[1]](context.Background(), c)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
`

// buildFragments builds a program from the Go blocks of a document. The compiler
// reports errors by the document's line numbers.
func buildFragments(document string, fragments []block, dir, program string) error {
	files := map[string]string{"main.go": fragmentMain}
	for _, f := range fragments {
		var imports strings.Builder
		for name, path := range importable {
			if name != "context" && name != "client" && regexp.MustCompile(`\b`+name+`\.`).MatchString(f.text) {
				fmt.Fprintf(&imports, "import %q\n", path)
			}
		}
		files[fmt.Sprintf("line%d.go", f.line)] = fmt.Sprintf(`package main

import "context"
import "animalstore/client"
%s
func init() {
	fragments["%d"] = func(ctx context.Context, c *client.Client) error {
//line %s:%d
%s
		return nil
	}
}
`, imports.String(), f.line, document, f.line, f.text)
	}
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", program)
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
		build.Args = append(build.Args, path)
	}
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("the Go blocks do not compile: %v\n%s", err, bytes.TrimSpace(out))
	}
	return nil
}
