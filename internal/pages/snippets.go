package pages

import (
	_ "embed"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// snippet is a request in one language.
type snippet struct{ Lang, Label, Code string }

// sampleAddress is the server's address in snippets. The page replaces it with its own
// address.
const sampleAddress = "http://127.0.0.1:8080"

// goExamples has a function for each operation. It is a test file, so that the compiler
// checks it and a test runs it.
//
//go:embed examples/examples_test.go
var goExamples string

// typescriptExamples has a function for each operation. A test compiles and runs them.
//
//go:embed examples.ts
var typescriptExamples string

// pythonExamples has a function for each operation. A test runs them.
//
//go:embed examples.py
var pythonExamples string

// sampleRequest is the URL of a request with the document's examples.
func (o operationView) sampleRequest() string {
	address := sampleAddress + "/v1" + o.Path
	for _, p := range o.Parameters {
		address = strings.Replace(address, "{"+p.Name+"}", p.Hint, 1)
	}
	for _, p := range o.Parameters {
		if p.In == "query" && (p.Required || p.Choices != nil) { // one filter, as an example
			return address + "?" + p.Name + "=" + url.QueryEscape(p.Hint)
		}
	}
	return address
}

// Line is the example on one line, for snippets.
func (b *bodyView) Line() string { return strings.Join(strings.Fields(b.Example), " ") }

// snippets returns the operation's request in several languages, with the document's
// examples. The page's script replaces the examples with the reader's input, so it
// depends on their format.
func (o operationView) snippets() []snippet {
	curl, js := "", ""
	switch {
	case o.receivesFile():
		curl = curlSnippet(o.Method, o.Address, "") + " \\\n  -o photo.jpg"
		js = "import { writeFile } from \"node:fs/promises\";\n\n" + strings.Replace(jsSnippet(o, ""),
			"console.log(response.status);", "await writeFile(\"photo.jpg\", await response.bytes());", 1)
	case o.Body != nil && o.Body.File != "":
		curl = curlSnippet(o.Method, o.Address, "") +
			fmt.Sprintf(" \\\n  -H \"Content-Type: %s\" \\\n  -T photo.jpg", o.Body.File)
		js = "import { readFile } from \"node:fs/promises\";\n\n" + strings.Replace(jsSnippet(o, ""),
			"  },\n", fmt.Sprintf("    \"Content-Type\": %q,\n  },\n  body: await readFile(\"photo.jpg\"),\n", o.Body.File), 1)
	default:
		body := ""
		if o.Body != nil {
			body = o.Body.Line()
		}
		curl, js = curlSnippet(o.Method, o.Address, body), jsSnippet(o, body)
	}
	return []snippet{
		{"curl", "curl", curl},
		{"go", "Go", goSnippet(o.ID)},
		{"ts", "TypeScript", typescriptSnippet(o.ID)},
		{"python", "Python", pythonSnippet(o.ID)},
		{"js", "JavaScript", js},
	}
}

// receivesFile reports whether a successful response is a file.
func (o operationView) receivesFile() bool {
	for _, r := range o.Responses {
		if r.Success() && r.File {
			return true
		}
	}
	return false
}

// hasContent reports whether a successful response has a body.
func (o operationView) hasContent() bool {
	for _, r := range o.Responses {
		if r.Success() && r.Examples != nil {
			return true
		}
	}
	return false
}

func curlSnippet(method, address, body string) string {
	var b strings.Builder
	b.WriteString("curl ")
	if method != "GET" && (method != "POST" || body == "") {
		fmt.Fprintf(&b, "-X %s ", method)
	}
	fmt.Fprintf(&b, "%q \\\n  -H \"Authorization: Bearer $ANIMALSTORE_API_KEY\"", address)
	if body != "" {
		fmt.Fprintf(&b, " \\\n  -H \"Content-Type: application/json\" \\\n  -d '%s'", strings.ReplaceAll(body, "'", `'\''`))
	}
	return b.String()
}

// goSnippet is the body of the function in goExamples, or "" if it is missing. A test
// fails if it is.
func goSnippet(operation string) string {
	_, code, ok := strings.Cut(goExamples, "\nfunc "+operation+"(")
	if !ok {
		return ""
	}
	_, code, _ = strings.Cut(code, " {\n")
	code, _, _ = strings.Cut(code, "\n}\n")
	code = strings.ReplaceAll("\n"+code, "\n\t", "\n")
	return fmt.Sprintf("c, err := client.New(%q, os.Getenv(\"ANIMALSTORE_API_KEY\"))\nif err != nil {\n\treturn err\n}", sampleAddress) +
		strings.TrimSuffix(code, "\nreturn nil")
}

// typescriptSnippet is the body of the function in typescriptExamples, with the imports
// that it needs.
func typescriptSnippet(operation string) string {
	_, code, ok := strings.Cut(typescriptExamples, "\nexport async function "+operation+"(")
	if !ok {
		panic("no TypeScript example for " + operation)
	}
	_, code, _ = strings.Cut(code, " {\n")
	code, _, _ = strings.Cut(code, "\n}\n")
	imports := ""
	for _, function := range []string{"readFile", "writeFile"} {
		if strings.Contains(code, function+"(") {
			imports = fmt.Sprintf("import { %s } from \"node:fs/promises\";\n", function)
		}
	}
	imports += "import { Client } from \"animalstore\";\n\n"
	client := fmt.Sprintf("const store = new Client(%q, process.env.ANIMALSTORE_API_KEY);", sampleAddress)
	return imports + client + strings.ReplaceAll("\n"+code, "\n  ", "\n")
}

func jsSnippet(o operationView, body string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "const response = await fetch(%q, {\n", o.Address)
	if o.Method != "GET" {
		fmt.Fprintf(&b, "  method: %q,\n", o.Method)
	}
	b.WriteString("  headers: {\n    Authorization: `Bearer ${process.env.ANIMALSTORE_API_KEY}`,\n")
	if body != "" {
		b.WriteString("    \"Content-Type\": \"application/json\",\n")
	}
	b.WriteString("  },\n")
	if body != "" {
		fmt.Fprintf(&b, "  body: JSON.stringify(%s),\n", body)
	}
	b.WriteString("});\nif (!response.ok) throw new Error((await response.json()).message);\n")
	if o.hasContent() {
		b.WriteString("console.log(await response.json());")
	} else {
		b.WriteString("console.log(response.status);")
	}
	return b.String()
}

// pythonSnippet is the body of the function in pythonExamples, with the imports that it
// needs.
func pythonSnippet(operation string) string {
	name := upperCase.ReplaceAllStringFunc(operation, func(c string) string { return "_" + strings.ToLower(c) })
	imports, code, ok := strings.Cut(pythonExamples, "\ndef "+name+"(store: Client) -> None:\n    ")
	if !ok {
		panic("no Python example for " + operation)
	}
	code, _, _ = strings.Cut(strings.TrimRight(code, "\n"), "\n\n\n")
	code = fmt.Sprintf("store = Client(%q, os.environ[\"ANIMALSTORE_API_KEY\"])\n", sampleAddress) + strings.ReplaceAll(code, "\n    ", "\n")
	_, imports, _ = strings.Cut(imports, "from animalstore import (\n")
	imports, _, _ = strings.Cut(imports, ")\n")
	needed := strings.FieldsFunc(imports, func(r rune) bool { return r == ',' || r == ' ' || r == '\n' })
	needed = slices.DeleteFunc(needed, func(name string) bool { return !strings.Contains(code, name+"(") })
	return fmt.Sprintf("import os\n\nfrom animalstore import %s\n\n%s", strings.Join(needed, ", "), code)
}

var upperCase = regexp.MustCompile("[A-Z]")
