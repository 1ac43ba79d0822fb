package animalstore_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// A function should fit on a screen and have few enough paths to test.
const (
	maxLines    = 60
	maxBranches = 15
)

// shapeExceptions are the functions over the limits that we keep, with the reason.
// The test fails for one that is within the limits again, so the list only shrinks.
var shapeExceptions = map[string]string{}

// function is the size of a function, including the function literals in it.
type function struct {
	name     string // such as internal/api.(*Server).ServeHTTP
	position string
	lines    int
	branches int
}

func (f function) tooBig() bool { return f.lines > maxLines || f.branches > maxBranches }

func TestFunctionShape(t *testing.T) {
	functions := productFunctions(t)
	if len(functions) < 500 {
		t.Fatalf("got %d functions, want the whole product", len(functions))
	}
	exceptions := maps.Clone(shapeExceptions)
	for _, f := range functions {
		_, listed := exceptions[f.name]
		delete(exceptions, f.name)
		switch {
		case f.tooBig() && !listed:
			t.Errorf("%s: %s has %d lines and %d branches, want at most %d and %d", f.position, f.name, f.lines, f.branches, maxLines, maxBranches)
		case !f.tooBig() && listed:
			t.Errorf("%s: %s is within the limits: remove it from shapeExceptions", f.position, f.name)
		}
	}
	for name, reason := range exceptions {
		t.Errorf("%s (%s) doesn't exist: remove it from shapeExceptions", name, reason)
	}
}

func productFunctions(t *testing.T) (functions []function) {
	t.Helper()
	for name, text := range productFiles(t) {
		found, err := functionsIn(name, text)
		if err != nil {
			t.Fatal(err)
		}
		functions = append(functions, found...)
	}
	return functions
}

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
	named := 0
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
				if strings.HasPrefix(name, "cmd/") {
					named++
				}
				below := name == path.Base(name) || strings.HasPrefix(name, "internal/") || strings.HasPrefix(name, "client/")
				if below && found != "--help" { // cobra's own
					t.Errorf("%s: names the flag %s, want that only in cmd", files.Position(literal.Pos()), found)
				}
			}
			return true
		})
	}
	if named < 50 {
		t.Errorf("got %d flags named in cmd, want all of them", named)
	}
}

// functionsIn returns the functions and methods declared in a file, and the function
// literals outside of them, which are named after their variable: name.func1.
func functionsIn(name string, text []byte) (functions []function, err error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	add := func(function string, node ast.Node) {
		start, end := files.Position(node.Pos()), files.Position(node.End())
		functions = append(functions, functionSize(path.Dir(name)+"."+function, start, end, node))
	}
	for _, declaration := range file.Decls {
		switch d := declaration.(type) {
		case *ast.FuncDecl:
			add(receiver(d)+d.Name.Name, d)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				if values, ok := spec.(*ast.ValueSpec); ok {
					for i, literal := range literalsIn(values) {
						add(fmt.Sprintf("%s.func%d", values.Names[0].Name, i+1), literal)
					}
				}
			}
		}
	}
	return functions, nil
}

func functionSize(name string, start, end token.Position, node ast.Node) function {
	f := function{name: name, position: fmt.Sprintf("%s:%d", start.Filename, start.Line), lines: end.Line - start.Line + 1}
	ast.Inspect(node, func(n ast.Node) bool {
		if isBranch(n) {
			f.branches++
		}
		return true
	})
	return f
}

// isBranch reports whether n adds a path through its function. Boolean operators
// and default cases don't count.
func isBranch(n ast.Node) bool {
	switch n := n.(type) {
	case *ast.IfStmt, *ast.ForStmt, *ast.RangeStmt:
		return true
	case *ast.CaseClause:
		return n.List != nil
	case *ast.CommClause:
		return n.Comm != nil
	}
	return false
}

// receiver returns "(*Type)." for a method, "" for a function.
func receiver(d *ast.FuncDecl) string {
	if d.Recv == nil {
		return ""
	}
	kind, star := d.Recv.List[0].Type, ""
	if pointer, ok := kind.(*ast.StarExpr); ok {
		kind, star = pointer.X, "*"
	}
	switch generic := kind.(type) {
	case *ast.IndexExpr:
		kind = generic.X
	case *ast.IndexListExpr:
		kind = generic.X
	}
	return fmt.Sprintf("(%s%s).", star, kind.(*ast.Ident).Name)
}

// literalsIn returns the outermost function literals in a node.
func literalsIn(node ast.Node) (literals []*ast.FuncLit) {
	ast.Inspect(node, func(n ast.Node) bool {
		literal, ok := n.(*ast.FuncLit)
		if ok {
			literals = append(literals, literal)
		}
		return !ok
	})
	return literals
}

// TestFunctionShapeGoesRed measures functions of known sizes.
func TestFunctionShapeGoesRed(t *testing.T) {
	filler := func(n int) string { return strings.Repeat("\tprintln()\n", n) }
	ifs := func(n int) string { return strings.Repeat("\tif true {\n\t}\n", n) }
	tests := []struct {
		name, source string
		function     string
		lines        int
		branches     int
		tooBig       bool
	}{
		{"as long as allowed", "func f() {\n" + filler(58) + "}", "p.f", 60, 0, false},
		{"too long", "func f() {\n" + filler(59) + "}", "p.f", 61, 0, true},
		{"as many branches as allowed", "func f() {\n" + ifs(15) + "}", "p.f", 32, 15, false},
		{"too many branches", "func f() {\n" + ifs(16) + "}", "p.f", 34, 16, true},
		{"branches in a literal", "func f() {\n\tfunc() {\n" + ifs(16) + "\t}()\n}", "p.f", 36, 16, true},
		{"a method", "type T[A any] struct{}\nfunc (t *T[A]) f() {\n" + filler(59) + "}", "p.(*T).f", 61, 0, true},
		{"a literal in a variable", "var v = []func(){func() {\n" + filler(59) + "}}", "p.v.func1", 61, 0, true},
		{"every kind of branch", "func f(c chan int) {\n\tfor range 3 {\n\t}\n\tfor {\n\t}\n\tswitch {\n\tcase true:\n\tdefault:\n\t}\n\tselect {\n\tcase <-c:\n\tdefault:\n\t}\n\tif true {\n\t} else if false {\n\t}\n}", "p.f", 17, 6, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := functionsIn("p/p.go", []byte("package p\n"+test.source+"\n"))
			if err != nil || len(got) != 1 {
				t.Fatalf("got %v and error %v, want one function", got, err)
			}
			f := got[0]
			if f.name != test.function || f.lines != test.lines || f.branches != test.branches || f.tooBig() != test.tooBig {
				t.Errorf("got %+v, too big %t; want %s with %d lines and %d branches, too big %t", f, f.tooBig(), test.function, test.lines, test.branches, test.tooBig)
			}
		})
	}
}

// TestShapeExceptionsHaveReasons keeps the list honest.
func TestShapeExceptionsHaveReasons(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(shapeExceptions)) {
		if strings.TrimSpace(shapeExceptions[name]) == "" {
			t.Errorf("%s: got no reason, want one", name)
		}
	}
}
