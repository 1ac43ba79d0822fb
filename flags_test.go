package animalstore_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// productFiles returns all Go files of this module by their names, except tests and the
// test suites under internal, such as dbtest. clienttest is part of the product.
func productFiles(t *testing.T) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			isSuite := strings.HasPrefix(name, "internal/") && strings.HasSuffix(name, "test")
			isHidden := name != "." && strings.HasPrefix(entry.Name(), ".")
			if isSuite || isHidden || name == "tools" || entry.Name() == "testdata" {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		files[name], err = os.ReadFile(name)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// TestOnlyCommandsNameFlags: a package below the command line can't know how its caller
// got a value. It returns a typed error, and the command words it.
func TestOnlyCommandsNameFlags(t *testing.T) {
	flag := regexp.MustCompile(`--[a-z][a-z-]+`)
	for name, text := range productFiles(t) {
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			for _, found := range flag.FindAllString(literal.Value, -1) {
				below := name == path.Base(name) || strings.HasPrefix(name, "internal/") || strings.HasPrefix(name, "client/")
				if below && found != "--help" { // cobra's own
					t.Errorf("%s: names the flag %s, want that only in cmd", files.Position(literal.Pos()), found)
				}
			}
			return true
		})
	}
}
