package e2e

import (
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"animalstore"
)

// The text of documents between code blocks can't be run. These tests check what can be
// checked: links, and the names of commands, flags, variables and codes.

// proseOf is a document without its code blocks, except those that are shown.
func proseOf(t *testing.T, name string) string {
	t.Helper()
	text := string(mustRead(t, filepath.Join("..", name)))
	return regexp.MustCompile("(?ms)^```(sh|go|js|json|python|text|http).*?^```$").ReplaceAllString(text, "")
}

var (
	link      = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading   = regexp.MustCompile(`(?m)^#+ (.*)$`)
	codeSpan  = regexp.MustCompile("`([^`]+)`")
	execStart = regexp.MustCompile(`(?m)^ExecStart=(.*)$`)
	flagName  = regexp.MustCompile(`--[a-z][a-z-]*`)
	// commandGroup is a list of commands in a help text.
	commandGroup = regexp.MustCompile(`(?m)^[A-Z].* Commands:\n(  .*\n)+`)
	variable     = regexp.MustCompile(`\bANIMALSTORE_[A-Z_]+\b`)
)

func TestDocumentLinks(t *testing.T) {
	t.Parallel()
	known := map[string][]string{} // anchors of documents
	for _, name := range append(documents(t), "README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md") {
		for _, m := range link.FindAllStringSubmatch(proseOf(t, name), -1) {
			if strings.Contains(m[1], "://") || strings.Contains(m[1], "bench/results/") {
				continue // the latter are written by make bench
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			target := path.Join(path.Dir(name), file)
			if file == "" {
				target = name
			}
			if !exists(filepath.Join("..", target)) {
				t.Errorf("%s links to %s, which does not exist", name, m[1])
				continue
			}
			if anchor == "" {
				continue
			}
			if known[target] == nil {
				known[target] = anchors(t, target)
			}
			if !slices.Contains(known[target], anchor) {
				t.Errorf("%s links to %s, but %s has the anchors %q", name, m[1], target, known[target])
			}
		}
	}
}

// anchors are the names of a document's headings in links.
func anchors(t *testing.T, name string) (all []string) {
	t.Helper()
	for _, m := range heading.FindAllStringSubmatch(proseOf(t, name), -1) {
		slug := regexp.MustCompile(`[^\w\- ]`).ReplaceAllString(strings.ToLower(m[1]), "")
		all = append(all, strings.ReplaceAll(slug, " ", "-"))
	}
	return all
}

// TestDocumentCommands looks up every command, flag and variable that documents
// mention in their text.
func TestDocumentCommands(t *testing.T) {
	t.Parallel()
	commands := helpPages(t)
	everything := ""
	for _, page := range commands {
		everything += page
	}
	for _, name := range append(documents(t), "README.md") {
		prose := proseOf(t, name)
		for _, m := range append(codeSpan.FindAllStringSubmatch(prose, -1), execStart.FindAllStringSubmatch(prose, -1)...) {
			span := strings.Join(strings.Fields(m[1]), " ")
			if wrong := wrongCommand(span, commands, everything); wrong != "" {
				t.Errorf("%s: `%s`: %s", name, span, wrong)
			}
		}
		for _, v := range variable.FindAllString(prose, -1) {
			v = strings.TrimSuffix(v, "_FILE") // every variable has one that names a file
			flag := "--" + strings.ReplaceAll(strings.ToLower(strings.TrimPrefix(v, "ANIMALSTORE_")), "_", "-")
			if !strings.Contains(everything, flag+" ") && !strings.Contains(everything, v) && !strings.Contains(makefile(), v) {
				t.Errorf("%s: %s is neither in a help text nor in the Makefile, and there is no flag %s", name, v, flag)
			}
		}
	}
}

// wrongCommand says what is wrong with a command in a document's text, or "" if it
// isn't a command or is correct.
func wrongCommand(span string, commands map[string]string, everything string) string {
	words := strings.Fields(span)
	if target, ok := strings.CutPrefix(span, "make "); ok {
		if !strings.Contains(makefile(), "\n"+strings.Fields(target)[0]+":") {
			return "the Makefile has no such target"
		}
		return ""
	}
	named := path.Base(words[0]) == "animalstore" && len(words) > 1
	if named {
		words = words[1:]
	}
	page := everything
	if known, ok := commands[words[0]]; ok && (named || len(words) > 1) {
		page = known
		if len(words) > 1 && !strings.HasPrefix(words[1], "-") && commandGroup.MatchString(known) {
			if page, ok = commands[words[0]+" "+words[1]]; !ok {
				return "no such command"
			}
		}
	} else if named && !strings.HasPrefix(words[0], "-") {
		return "no such command"
	} else if !strings.HasPrefix(words[0], "--") {
		return "" // no command of ours
	}
	for _, flag := range flagName.FindAllString(span, -1) {
		if !strings.Contains(page, flag+" ") {
			return "no help text has the flag " + flag
		}
	}
	return ""
}

var makefile = sync.OnceValue(func() string { return contents("../Makefile") })

// helpPages are the help texts of all commands, by name such as "keys create".
func helpPages(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../cmd/animalstore/testdata/help/animalstore*.txt")
	if err != nil || len(files) < 10 {
		t.Fatalf("got the help texts %q, %v, want all", files, err)
	}
	pages := map[string]string{}
	for _, file := range files {
		words := strings.Split(strings.TrimSuffix(filepath.Base(file), ".txt"), "-")
		pages[strings.Join(words[1:], " ")] = string(mustRead(t, file))
	}
	return pages
}

// TestEveryCodeIsPromised: callers program against codes. TestCodesHaveSections checks that a
// guide explains each.
func TestEveryCodeIsPromised(t *testing.T) {
	t.Parallel()
	contract := proseOf(t, "docs/contract.md")
	for _, code := range animalstore.Codes {
		if !strings.Contains(contract, "`"+string(code)+"`") {
			t.Errorf("the contract doesn't name %s", code)
		}
	}
}
