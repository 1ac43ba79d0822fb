// Package internal_test checks rules that hold for the whole repository.
package internal_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const (
	module = "animalstore"
	root   = ".." // of the repository
)

// importRules are the two tables under "Import rules" in CONTRIBUTING.md.
type importRules struct {
	packages map[string]packageRule // by path within the module, "." for the root
	modules  map[string][]string    // the packages that may import a module, by its path
}

type packageRule struct {
	anything     bool
	standardOnly bool
	ours         []string
}

// unrestricted packages test and measure the product from outside, so they may
// import any third-party module.
var unrestricted = []string{"bench", "e2e"}

var inBackticks = regexp.MustCompile("`([^`]+)`")

// readImportRules reads the tables whose headers are "package | may import" and
// "module | imported by".
func readImportRules(t *testing.T) importRules {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "CONTRIBUTING.md"))
	if err != nil {
		t.Fatal(err)
	}
	rules := importRules{map[string]packageRule{}, map[string][]string{}}
	header := ""
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if !strings.HasPrefix(line, "|") || len(cells) != 2 {
			header = ""
			continue
		}
		left, right := strings.TrimSpace(cells[0]), strings.TrimSpace(cells[1])
		switch header {
		case "":
			header = left + " | " + right
		case "package | may import":
			for _, name := range namesIn(left) {
				rules.packages[name] = packageRule{
					anything:     right == "anything",
					standardOnly: strings.Contains(right, "standard library only"),
					ours:         namesIn(right),
				}
			}
		case "module | imported by":
			for _, name := range namesIn(left) {
				rules.modules[name] = namesIn(right)
			}
		}
	}
	return rules
}

// namesIn returns the names in backticks; the word root means the root package.
func namesIn(cell string) (names []string) {
	if regexp.MustCompile(`^root\b`).MatchString(cell) {
		names = append(names, ".")
	}
	for _, m := range inBackticks.FindAllStringSubmatch(cell, -1) {
		names = append(names, m[1])
	}
	return names
}

// violations returns the imports of p that the rules don't allow.
func (rules importRules) violations(p goPackage) (wrong []string) {
	name, _ := pathInModule(p.ImportPath)
	rule, ok := rules.packages[name]
	if !ok {
		return []string{fmt.Sprintf("%s has no row in the import table of CONTRIBUTING.md: add one", name)}
	}
	for _, path := range p.Imports {
		imported, isOurs := pathInModule(path)
		switch {
		case isOurs:
			if !rule.anything && !slices.Contains(rule.ours, imported) {
				wrong = append(wrong, fmt.Sprintf("%s imports %s, want only %q", name, imported, rule.ours))
			}
		case isStandard(path) || slices.Contains(unrestricted, name):
		case rule.standardOnly:
			wrong = append(wrong, fmt.Sprintf("%s imports %s, want only the standard library", name, path))
		default:
			owners, ok := rules.owners(path)
			if !ok {
				wrong = append(wrong, fmt.Sprintf("%s imports %s, which has no row in the module table of CONTRIBUTING.md: add one", name, path))
			} else if !slices.Contains(owners, name) {
				wrong = append(wrong, fmt.Sprintf("%s imports %s, want that only in %q", name, path, owners))
			}
		}
	}
	return wrong
}

func (rules importRules) owners(path string) (owners []string, ok bool) {
	for prefix, owners := range rules.modules {
		if path == prefix || strings.HasPrefix(path, prefix+"/") {
			return owners, true
		}
	}
	return nil, false
}

// goPackage is the part of go list's output that the rules need. Imports doesn't
// include those of test files.
type goPackage struct {
	ImportPath string
	Imports    []string
}

// TestImports checks the imports of every package, for every system we build for.
// Import cycles don't compile, so they need no check.
func TestImports(t *testing.T) {
	rules := readImportRules(t)
	for _, goos := range []string{"linux", "darwin", "windows"} {
		for _, p := range listPackages(t, goos) {
			for _, wrong := range rules.violations(p) {
				t.Errorf("%s: %s", goos, wrong)
			}
		}
	}
}

func listPackages(t *testing.T, goos string) (packages []goPackage) {
	t.Helper()
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH=amd64", "CGO_ENABLED=0")
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	for d := json.NewDecoder(bytes.NewReader(out)); d.More(); {
		var p goPackage
		if err := d.Decode(&p); err != nil {
			t.Fatal(err)
		}
		packages = append(packages, p)
	}
	return packages
}

// pathInModule returns the path of one of our packages within the module.
func pathInModule(path string) (string, bool) {
	if path == module {
		return ".", true
	}
	return strings.CutPrefix(path, module+"/")
}

func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// TestOnlyCommandsNameFlags: a package below the command line can't know how its caller
// got a value. It returns a typed error, and the command words it.
func TestOnlyCommandsNameFlags(t *testing.T) {
	flag := regexp.MustCompile(`--[a-z][a-z-]+`)
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, entry fs.DirEntry, err error) error {
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
		file, err := parser.ParseFile(files, filepath.Join(root, name), nil, parser.SkipObjectResolution)
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
