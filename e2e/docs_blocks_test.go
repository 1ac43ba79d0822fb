package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"animalstore/internal/testenv"
)

// A document is tested by the fences of its code blocks. This is all they can say:
//
//	sh                     run in the document's shell, at this place
//	sh terminal            the same in a separate terminal; the document continues
//	                       when the server that is started there serves
//	go                     compiled, and run at this place as the body of a function
//	                       with a context, ctx, and a client of the server, c
//	python                 run at this place, with a client of the server, client
//	js                     run with Node at this place, as a module with a client of the
//	                       server, store, and all names of the package animalstore
//	LANG file=NAME         written to this file, at this place
//	LANG output            what the block before it prints; ... is anything
//	json                   parsed
//	text, http, ini, yaml  shown
//	LANG not run: REASON   left alone
//
// A document that prints [documentedPostgres] finds an empty database there. Every other fence
// is a mistake, and so is a command in a block that is only shown. A sh block without output
// has to succeed; one with output is judged by it.
type block struct {
	line int    // of its first line of text
	lang string // such as "sh"
	how  string // the rest of the fence
	text string
}

var (
	shown = []string{"text", "http", "ini", "yaml"}
	// looseFence matches a fence that would be overlooked.
	looseFence = regexp.MustCompile("^[ \t>*-]*(~~~|[ \t>]+```)")
	colours    = regexp.MustCompile("\x1b\\[[0-9;]*m")
	// pasteable matches the start of a line that a reader may want to paste.
	pasteable = regexp.MustCompile(`(?m)^(\$|animalstore|bin/animalstore|cp|curl|git|go|make|sqlite3|sudo|systemctl) `)
)

// readBlocks finds the code blocks of a document.
func readBlocks(document string) (blocks []block, problems []string) {
	var open *block
	for i, line := range strings.SplitAfter(document, "\n") {
		info, fence := strings.CutPrefix(strings.TrimRight(line, "\n"), "```")
		switch {
		case fence && open == nil:
			lang, how, _ := strings.Cut(info, " ")
			open = &block{line: i + 2, lang: lang, how: how}
		case fence && info != "":
			problems = append(problems, fmt.Sprintf("%d: a block starts inside another one", i+1))
		case fence:
			blocks, open = append(blocks, *open), nil
		case looseFence.MatchString(line):
			problems = append(problems, fmt.Sprintf("%d: a fence is ``` at the beginning of the line", i+1))
		case open != nil:
			open.text += line
		}
	}
	if open != nil {
		problems = append(problems, fmt.Sprintf("%d: the block does not end", open.line-1))
	}
	return blocks, problems
}

// exempt returns the reason why a block isn't run.
func (b block) exempt() (reason string, ok bool) { return strings.CutPrefix(b.how, "not run:") }

// file returns the name of the file for a block.
func (b block) file() (name string, ok bool) { return strings.CutPrefix(b.how, "file=") }

// isFragment reports whether a block is part of a program.
func (b block) isFragment() bool {
	return (b.lang == "go" || b.lang == "js" || b.lang == "python") && b.how == ""
}

// problem says what is wrong with a block, or "" if nothing is.
func (b block) problem() string {
	if reason, ok := b.exempt(); ok {
		if strings.TrimSpace(reason) == "" {
			return "the reason is missing: write \"not run: REASON\""
		}
		return ""
	}
	if name, ok := b.file(); ok {
		if name == "" || strings.ContainsAny(name, " '") {
			return "the name of the file is missing: write \"file=NAME\""
		}
		return ""
	}
	if b.lang != "" && b.how == "output" || b.lang == "sh" && (b.how == "" || b.how == "terminal") || b.isFragment() {
		return ""
	}
	switch {
	case b.lang == "json" && b.how == "":
		var value any
		if err := json.Unmarshal([]byte(b.text), &value); err != nil {
			return fmt.Sprintf("this isn't valid JSON: %v", err)
		}
		return ""
	case slices.Contains(shown, b.lang) && b.how == "":
		if found := pasteable.FindString(b.text); found != "" {
			return fmt.Sprintf("%q is a command, but this block is not run: make it sh", found)
		}
		return ""
	}
	return fmt.Sprintf("no rule for a block %q", strings.TrimSpace("```"+b.lang+" "+b.how))
}

// step is something to do in a document's shell.
type step struct {
	line     int
	script   string
	terminal bool
	output   *block // the expected output; nil for any
}

// plan returns the steps of a document's session, and the Go blocks that they call
// through program. They call Python blocks through program.py.
func plan(blocks []block, program string) (steps []step, fragments []block, problems []string) {
	runs := false // the block before was run
	for _, b := range blocks {
		if p := b.problem(); p != "" {
			problems = append(problems, fmt.Sprintf("%d: %s", b.line-1, p))
			continue
		}
		name, isFile := b.file()
		_, isExempt := b.exempt()
		switch {
		case isExempt:
		case isFile:
			steps = append(steps, step{line: b.line, script: heredoc(name, b.text)})
		case b.how == "output" && !runs:
			problems = append(problems, fmt.Sprintf("%d: no command before this output", b.line-1))
		case b.how == "output":
			steps[len(steps)-1].output = &b
		case b.lang == "sh":
			steps = append(steps, step{line: b.line, script: b.text, terminal: b.how == "terminal"})
		case b.lang == "go":
			fragments = append(fragments, b)
			steps = append(steps, step{line: b.line, script: fmt.Sprintf("%s %d\n", program, b.line)})
		case b.lang == "js":
			steps = append(steps, step{line: b.line, script: fmt.Sprintf("node %s\n", moduleOf(b, filepath.Dir(program)))})
		case b.lang == "python":
			steps = append(steps, step{line: b.line, script: fmt.Sprintf("%s.py %d\n", program, b.line)})
		}
		runs = b.lang == "sh" && b.how != "output" && !isExempt && !isFile || b.isFragment()
	}
	return steps, fragments, problems
}

// heredoc writes text to a file, as a reader would with an editor.
func heredoc(name, text string) string {
	return fmt.Sprintf("mkdir -p \"$(dirname '%s')\"\ncat >'%s' <<'END OF FILE'\n%sEND OF FILE\n", name, name, text)
}

// prints reports whether got matches the shown output. In it, ... stands for any number
// of lines if it is alone on a line, and otherwise for any text within a line.
func prints(shown, got string) bool {
	pattern := `\A`
	for line := range strings.Lines(strings.TrimSpace(shown) + "\n") {
		if strings.TrimSpace(line) == "..." {
			pattern += `(?:.*\n)*?`
			continue
		}
		pattern += strings.ReplaceAll(regexp.QuoteMeta(strings.TrimRight(line, " \n")), `\.\.\.`, `.*`) + `[ ]*\n`
	}
	return regexp.MustCompile(pattern + `\z`).MatchString(strings.TrimSpace(got) + "\n")
}

// onScreen returns printed text as a terminal would show it: without colours, and only
// the last version of overwritten lines.
func onScreen(printed string) (seen string) {
	for line := range strings.Lines(colours.ReplaceAllString(printed, "")) {
		line = strings.TrimRight(line, "\r\n")
		seen += line[strings.LastIndex(line, "\r")+1:] + "\n"
	}
	return seen
}

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
func buildFragments(t *testing.T, document string, fragments []block, dir, program string) {
	t.Helper()
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
	build := exec.Command("go", "build", "-ldflags=-s -w", "-o", program)
	for name, text := range files {
		build.Args = append(build.Args, mustWrite(t, filepath.Join(dir, name), text, 0o600))
	}
	build.Env = append(os.Environ(), testenv.BuildFlags...)
	output(t, build)
}

// moduleOf is the file of a js block.
func moduleOf(b block, scratch string) string {
	return filepath.Join(scratch, "js", fmt.Sprintf("line%d.mjs", b.line))
}

// moduleStart comes before a js block that doesn't import the client itself.
const moduleStart = `import * as animalstore from "animalstore";
const { Client, NotModifiedError, RateLimitError, ServiceError, verifyWebhook } = animalstore;
const store = new Client("http://127.0.0.1:8080", process.env.ANIMALSTORE_API_KEY);
`

// writeModules writes the js blocks of a document, and builds the client that they import.
func writeModules(t *testing.T, blocks []block, scratch string) {
	t.Helper()
	blocks = slices.DeleteFunc(slices.Clone(blocks), func(b block) bool { return b.lang != "js" || b.how != "" })
	if len(blocks) == 0 {
		return
	}
	testenv.Need(t, "node")
	testenv.Need(t, "npm")
	source := filepath.Join("..", "clients", "typescript")
	installed := filepath.Join(scratch, "js", "node_modules", "animalstore")
	output(t, exec.Command(filepath.Join(source, "build"), filepath.Join(installed, "dist")))
	copyInto(t, filepath.Join(source, "package.json"), filepath.Join(installed, "package.json"))
	for _, b := range blocks {
		text := b.text
		if !strings.Contains(text, `from "animalstore"`) {
			text = moduleStart + text
		}
		mustWrite(t, moduleOf(b, scratch), text, 0o600)
	}
}
