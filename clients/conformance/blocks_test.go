package conformance

import (
	"fmt"
	"html"
	"io"
	"net/http"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// block is an example in a document or on the page of the reference.
type block struct {
	document string
	line     int // of its first line
	lang     string
	text     string
	fragment bool // of a program with a client, which the guide has shown before
}

// preludes are the clients of the fragments.
var preludes = map[string]string{
	".py": `import os; import animalstore; client = animalstore.Client("http://127.0.0.1:8080", os.environ["ANIMALSTORE_API_KEY"])`,
	".ts": `import { Client, NotModifiedError, RateLimitError, ServiceError } from "animalstore"; const store = new Client("http://127.0.0.1:8080", process.env.ANIMALSTORE_API_KEY);`,
}

// writeBlocks writes each block in one of the languages to a file, in the lines that it has
// in its document.
func writeBlocks(t *testing.T, dir, extension string, languages ...string) (files []string) {
	t.Helper()
	for _, b := range append(documentBlocks(t), referenceBlocks(t)...) {
		if !slices.Contains(languages, b.lang) {
			continue
		}
		before := strings.Repeat("\n", b.line-1)
		if b.fragment {
			before = preludes[extension] + before
		}
		name := fmt.Sprintf("%s_%d%s", b.document, b.line, extension)
		write(t, filepath.Join(dir, name), before+b.text)
		files = append(files, name)
	}
	return files
}

// program matches a block that has its own client.
var program = regexp.MustCompile(`\Aimport os\n|from "animalstore"`)

var fenced = regexp.MustCompile("(?ms)^```(python|js|ts)( [^\n]*)?\n(.*?)^```$")

// documentBlocks are the blocks in the guides and the READMEs.
func documentBlocks(t *testing.T) (blocks []block) {
	t.Helper()
	for _, pattern := range []string{"../../*.md", "../../docs/*.md", "../*/README.md"} {
		documents, err := filepath.Glob(pattern)
		if err != nil || len(documents) == 0 {
			t.Fatalf("%s: got %v, %v", pattern, documents, err)
		}
		for _, path := range documents {
			document := string(mustRead(t, path))
			name := strings.NewReplacer("../", "", "/", "_", ".md", "").Replace(path)
			for _, at := range fenced.FindAllStringSubmatchIndex(document, -1) {
				text := document[at[6]:at[7]]
				blocks = append(blocks, block{
					document: name, line: strings.Count(document[:at[6]], "\n") + 1,
					lang: document[at[2]:at[3]], text: text,
					fragment: strings.HasPrefix(name, "docs_") && at[4] < 0 && !program.MatchString(text),
				})
			}
		}
	}
	return blocks
}

var (
	reference = regexp.MustCompile(`(?s)<figure class="block (python|ts)"><pre tabindex="0"><code>(.*?)</code>`)
	operation = regexp.MustCompile(`id="(\w+)-python"`)
)

// referenceBlocks are the blocks on the page of the reference, as it is served.
func referenceBlocks(t *testing.T) (blocks []block) {
	t.Helper()
	res, err := http.Get(startReal(t) + "/docs")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	page, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	operations, found := operation.FindAllSubmatch(page, -1), reference.FindAllSubmatch(page, -1)
	if len(operations) == 0 || len(found) != 2*len(operations) {
		t.Fatalf("the reference has %d examples of %d operations in Python and TypeScript", len(found), len(operations))
	}
	for i, one := range found {
		name := "reference_" + string(operations[i/2][1])
		blocks = append(blocks, block{document: name, line: 1, lang: string(one[1]), text: html.UnescapeString(string(one[2]))})
	}
	return blocks
}
