package animalstore_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestOnlyCommandsNameFlags: a package below the command line can't know how its caller
// got a value. It returns a typed error, and the command words it.
func TestOnlyCommandsNameFlags(t *testing.T) {
	flag := regexp.MustCompile(`--[a-z][a-z-]+`)
	err := fs.WalkDir(os.DirFS("."), ".", func(name string, entry fs.DirEntry, err error) error {
		isBelow := !strings.Contains(name, "/") || strings.HasPrefix(name, "internal/") || strings.HasPrefix(name, "client/")
		isSuite := strings.HasPrefix(name, "internal/") && strings.HasSuffix(name, "test")
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (isSuite || !isBelow):
			return fs.SkipDir
		case !isBelow || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			literal, ok := n.(*ast.BasicLit)
			if !ok || literal.Kind != token.STRING {
				return true
			}
			for _, found := range flag.FindAllString(literal.Value, -1) {
				if found != "--help" { // cobra's own
					t.Errorf("%s: names the flag %s, want that only in cmd", files.Position(literal.Pos()), found)
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
