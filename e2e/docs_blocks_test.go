package e2e

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A document is tested by the fences of its code blocks. This is all they can say:
//
//	sh                     run in the document's shell, at this place
//	sh terminal            the same in a separate terminal; the document continues
//	                       when the server that is started there serves
//	go                     compiled, and run at this place as the body of a function
//	                       with a context, ctx, and a client of the server, c
//	LANG file=NAME         written to this file, at this place
//	LANG output            what the sh or go block before it prints; ... is anything
//	json                   parsed
//	text, http, ini        shown
//	LANG not run: REASON   left alone
//
// A document that prints postgres://animalstore@127.0.0.1/ finds an empty server
// there. Every other fence is a mistake, and so is a command in a block that is only
// shown. A sh block without output has to succeed; one with output is judged by it.
type block struct {
	line int    // of its first line of text
	lang string // such as "sh"
	how  string // what the fence says after the language
	text string
}

var (
	shown = []string{"text", "http", "ini"}
	// looseFence is a fence that would be overlooked.
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

// file is where a block is to be saved.
func (b block) file() (name string, ok bool) { return strings.CutPrefix(b.how, "file=") }

// problem says what is wrong with a block, "" if nothing is.
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
	if b.lang != "" && b.how == "output" || b.lang == "sh" && (b.how == "" || b.how == "terminal") || b.lang == "go" && b.how == "" {
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
	output   *block // what it has to print, nil if anything will do
}

// plan is what to do for a document: the steps of its session, and the Go blocks
// that these call, by program.
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
		}
		runs = b.lang == "sh" && b.how != "output" && !isExempt && !isFile || b.lang == "go" && b.how == ""
	}
	return steps, fragments, problems
}

// heredoc writes text to a file, as a reader would with an editor.
func heredoc(name, text string) string {
	return fmt.Sprintf("mkdir -p \"$(dirname '%s')\"\ncat >'%s' <<'END OF FILE'\n%sEND OF FILE\n", name, name, text)
}

// prints reports whether got matches what was shown. There, ... on a line of
// its own is any number of lines, and elsewhere any text within a line.
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

// onScreen is what is to be seen of what was printed on a terminal: no colours, and
// of a line that was written over the last.
func onScreen(printed string) (seen string) {
	for line := range strings.Lines(colours.ReplaceAllString(printed, "")) {
		line = strings.TrimRight(line, "\r\n")
		seen += line[strings.LastIndex(line, "\r")+1:] + "\n"
	}
	return seen
}
