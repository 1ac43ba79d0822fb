package animalstore_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "animalstore"

// mayImport are the packages of ours that each package may import.
var mayImport = map[string][]string{
	".":                            {},
	"openapi":                      {},
	"client":                       {"."},
	"client/clienttest":            {".", "client", "internal/api", "internal/db/sqlite", "internal/keys", "internal/ratelimit"},
	"internal/db":                  {"."},
	"internal/keys":                {"."},
	"internal/ratelimit":           {"."},
	"internal/ratelimit/limittest": {".", "internal/ratelimit"},
	"internal/ratelimit/redistest": {},
	"internal/db/sqlite":           {".", "internal/db"},
	"internal/db/postgres":         {".", "internal/db"},
	"internal/db/postgres/pgtest":  {},
	"internal/db/dbtest":           {".", "internal/db"},
	"internal/db/transfer":         {".", "internal/db"},
	"internal/api":                 {".", "openapi", "internal/db", "internal/keys", "internal/pages", "internal/ratelimit"},
	"internal/http1":               {},
	"internal/pages":               {"."},
	"internal/petfile":             {".", "internal/strictjson"},
	"internal/sample":              {"."},
	"internal/terminal":            {},
}

// Commands wire everything together; what tests and measures the product from
// outside is no part of it.
const (
	commands = "cmd/"
	outside  = "e2e bench"
)

// standardOnly are the packages that others may import without a second thought.
var standardOnly = []string{".", "openapi", "client"}

// onlyIn are the modules that are the affair of one package, or of a few.
var onlyIn = map[string]string{
	"github.com/jackc/":                  "internal/db/postgres internal/db/postgres/pgtest",
	"github.com/pressly/goose":           "internal/db/postgres",
	"github.com/redis/":                  "internal/ratelimit internal/ratelimit/redistest",
	"github.com/go-json-experiment/json": "internal/api",
	"zombiezen.com/go/sqlite":            "internal/db/sqlite",
	"modernc.org/sqlite":                 "internal/db/sqlite",
	"github.com/spf13/cobra":             "cmd/animalstore",
	"github.com/prometheus/":             "cmd/animalstore",
	"github.com/schollz/progressbar":     "internal/terminal",
	"github.com/swaggest/swgui":          "internal/pages",
	"github.com/chromedp/":               "tests alone",
	"github.com/rivo/uniseg":             "internal/terminal",
	"golang.org/x/term":                  "internal/terminal",
	"github.com/creack/pty":              "tests alone",
	"github.com/getkin/kin-openapi":      "tests alone",
	"github.com/rogpeppe/go-internal":    "tests alone",
	"pgregory.net/rapid":                 "internal/db/dbtest internal/ratelimit/limittest",
}

// goPackage is what go list tells of a package. Imports are those of its files
// that are no tests.
type goPackage struct {
	ImportPath string
	Imports    []string
}

// TestImports keeps the layers apart, for every system we build for.
func TestImports(t *testing.T) {
	for _, goos := range []string{"linux", "darwin", "windows"} {
		packages, err := listPackages(goos)
		if err != nil {
			t.Fatal(err)
		}
		if len(packages) < 5 {
			t.Errorf("got %d packages, want the whole module", len(packages))
		}
		for _, p := range packages {
			for _, wrong := range badImports(p) {
				t.Errorf("%s: %s", goos, wrong)
			}
		}
	}
}

func listPackages(goos string) (packages []goPackage, err error) {
	cmd := exec.Command("go", "list", "-json=ImportPath,Imports", "./...")
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH=amd64", "CGO_ENABLED=0")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w: %s", err, stderr.Bytes())
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p goPackage
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return packages, nil
		} else if err != nil {
			return nil, err
		}
		packages = append(packages, p)
	}
}

// badImports says what a package imports and may not.
func badImports(p goPackage) (wrong []string) {
	name, _ := ours(p.ImportPath)
	top, _, _ := strings.Cut(name, "/")
	if slices.Contains(strings.Fields(outside), top) {
		return nil
	}
	anything := strings.HasPrefix(name, commands)
	allowed, known := mayImport[name]
	if !known && !anything {
		return []string{fmt.Sprintf("%s has no row in mayImport: say there what it may import", name)}
	}
	for _, path := range p.Imports {
		imported, isOurs := ours(path)
		switch {
		case isOurs && !anything && !slices.Contains(allowed, imported):
			wrong = append(wrong, fmt.Sprintf("%s imports %s: got it, want one of %q", name, imported, allowed))
		case !isOurs && !isStandard(path) && slices.Contains(standardOnly, name):
			wrong = append(wrong, fmt.Sprintf("%s imports %s: got it, want the standard library alone", name, path))
		}
		for prefix, owner := range onlyIn {
			if strings.HasPrefix(path, prefix) && !slices.Contains(strings.Fields(owner), name) {
				wrong = append(wrong, fmt.Sprintf("%s imports %s: got it, want that in %s", name, path, owner))
			}
		}
	}
	return wrong
}

// ours is the path of a package within this module.
func ours(path string) (string, bool) {
	if path == module {
		return ".", true
	}
	return strings.CutPrefix(path, module+"/")
}

func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// TestImportRulesGoRed: a rule that cannot be broken guards nothing.
func TestImportRulesGoRed(t *testing.T) {
	tests := []struct {
		from, to string
		want     bool // allowed
	}{
		{"animalstore", "time", true},
		{"animalstore", "animalstore/internal/db", false},
		{"animalstore", "github.com/spf13/cobra", false},
		{"animalstore/openapi", "animalstore", false},
		{"animalstore/openapi", "github.com/getkin/kin-openapi/openapi3", false},
		{"animalstore/client", "animalstore", true},
		{"animalstore/client", "animalstore/internal/api", false},
		{"animalstore/client", "github.com/spf13/cobra", false},
		{"animalstore/client/clienttest", "animalstore/internal/api", true},
		{"animalstore/client/clienttest", "animalstore/internal/db", false},
		{"animalstore/internal/db", "animalstore", true},
		{"animalstore/internal/db", "animalstore/internal/db/sqlite", false},
		{"animalstore/internal/keys", "animalstore/internal/db", false},
		{"animalstore/internal/ratelimit", "animalstore/internal/db", false},
		{"animalstore/internal/ratelimit", "github.com/redis/go-redis/v9", true},
		{"animalstore/internal/ratelimit", "animalstore/internal/ratelimit/limittest", false},
		{"animalstore/internal/ratelimit", "pgregory.net/rapid", false},
		{"animalstore/internal/ratelimit", "animalstore/internal/ratelimit/redistest", false},
		{"animalstore/internal/ratelimit/redistest", "github.com/redis/go-redis/v9", true},
		{"animalstore/internal/ratelimit/limittest", "animalstore/internal/ratelimit", true},
		{"animalstore/internal/ratelimit/limittest", "pgregory.net/rapid", true},
		{"animalstore/internal/ratelimit/limittest", "animalstore/internal/db", false},
		{"animalstore/internal/api", "github.com/redis/go-redis/v9", false},
		{"animalstore/internal/db/sqlite", "zombiezen.com/go/sqlite", true},
		{"animalstore/internal/db/sqlite", "animalstore/internal/db/postgres", false},
		{"animalstore/internal/db/postgres", "animalstore/internal/db/sqlite", false},
		{"animalstore/internal/db/postgres", "github.com/jackc/pgx/v5/pgxpool", true},
		{"animalstore/internal/db/postgres", "animalstore/internal/db/postgres/pgtest", false},
		{"animalstore/internal/db/postgres/pgtest", "github.com/jackc/pgx/v5", true},
		{"animalstore/internal/db/postgres/pgtest", "animalstore/internal/db/postgres", false},
		{"animalstore/cmd/animalstore", "github.com/jackc/pgx/v5", false},
		{"animalstore/cmd/animalstore", "animalstore/internal/db/postgres", true},
		{"animalstore/cmd/animalstore", "animalstore/internal/db/sqlite", true},
		{"animalstore/internal/api", "animalstore/internal/keys", true},
		{"animalstore/internal/api", "animalstore/internal/db/sqlite", false},
		{"animalstore/internal/api", "github.com/go-json-experiment/json/jsontext", true},
		{"animalstore/client", "github.com/go-json-experiment/json", false},
		{"animalstore/internal/api", "github.com/prometheus/client_golang/prometheus", false},
		{"animalstore/cmd/animalstore", "github.com/prometheus/client_golang/prometheus", true},
		{"animalstore/internal/api", "animalstore/internal/pages", true},
		{"animalstore/internal/api", "github.com/swaggest/swgui/v5/static", false},
		{"animalstore/internal/pages", "github.com/swaggest/swgui/v5/static", true},
		{"animalstore/internal/pages", "animalstore/internal/db", false},
		{"animalstore/cmd/animalstore", "github.com/chromedp/chromedp", false},
		{"animalstore/internal/db/sqlite", "github.com/schollz/progressbar/v3", false},
		{"animalstore/e2e", "zombiezen.com/go/sqlite", true},
		{"animalstore/internal/stray", "time", false},
	}
	for _, test := range tests {
		got := badImports(goPackage{test.from, []string{test.to}})
		if allowed := len(got) == 0; allowed != test.want {
			t.Errorf("%s imports %s: got %q, want allowed %t", test.from, test.to, got, test.want)
		}
	}
}
