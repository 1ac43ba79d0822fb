package e2e

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"animalstore"
	"animalstore/internal/testenv"
)

// The text of documents between code blocks can't be run. These tests check what can be
// checked: links, and the names of commands, flags, variables and codes.

// proseOf is a document without its code blocks, except those that are shown.
func proseOf(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", name))
	if err != nil {
		t.Fatal(err)
	}
	return regexp.MustCompile("(?ms)^```(sh|go|js|json|python|text|http).*?^```$").ReplaceAllString(string(text), "")
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
	for _, name := range append(documents(t, ".."), "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md") {
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

// TestReadmeIsOneScreen: the README shows what this is and how to run it without much
// scrolling. Details go in a guide.
func TestReadmeIsOneScreen(t *testing.T) {
	t.Parallel()
	lines := 0
	for line := range strings.Lines(contents("../README.md")) {
		if strings.TrimSpace(line) != "" {
			lines++
		}
	}
	if lines == 0 || lines > 50 {
		t.Errorf("the README has %d lines that are not empty, want at most 50", lines)
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
	for _, name := range documents(t, "..") {
		prose := proseOf(t, name)
		for _, m := range append(codeSpan.FindAllStringSubmatch(prose, -1), execStart.FindAllStringSubmatch(prose, -1)...) {
			span := strings.Join(strings.Fields(m[1]), " ")
			if wrong := wrongCommand(span, commands, everything); wrong != "" {
				t.Errorf("%s: `%s`: %s", name, span, wrong)
			}
		}
		for _, v := range variable.FindAllString(prose, -1) {
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
	pages := map[string]string{}
	var read func(words ...string)
	read = func(words ...string) {
		page := run(t, append(slices.Clone(words), "--help")...).stdout
		pages[strings.Join(words, " ")] = page
		for _, group := range commandGroup.FindAllString(page, -1) {
			for line := range strings.Lines(group) {
				if entry, ok := strings.CutPrefix(line, "  "); ok {
					name, _, _ := strings.Cut(entry, " ")
					read(append(slices.Clone(words), name)...)
				}
			}
		}
	}
	read()
	if pages["serve"] == "" || pages["keys create"] == "" {
		t.Fatalf("the help texts are not found: %q", pages)
	}
	return pages
}

// TestEveryCodeIsExplained: callers program against codes.
func TestEveryCodeIsExplained(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"docs/contract.md", "docs/callers.md"} {
		prose := proseOf(t, name)
		for _, code := range animalstore.Codes {
			if !strings.Contains(prose, "`"+string(code)+"`") {
				t.Errorf("%s doesn't explain %s", name, code)
			}
		}
	}
}

// TestWrongCommandsGoRed: wrong commands in documents are detected.
func TestWrongCommandsGoRed(t *testing.T) {
	t.Parallel()
	testenv.Slow(t)
	commands := helpPages(t)
	everything := ""
	for _, page := range commands {
		everything += page
	}
	for span, want := range map[string]string{
		"animalstore serve":                      "",
		"animalstore --help":                     "",
		"animalstore pets --help":                "",
		"bin/animalstore keys create --plan pro": "",
		"keys rotate --grace 0s":                 "",
		"--listen":                               "",
		"--cors-origins https://shop.example":    "",
		"make test":                              "",
		"animalstore.db":                         "",
		"keys":                                   "",
		"GET /v1/keys":                           "",
		"animalstore frobnicate":                 "no such command",
		"keys frobnicate":                        "no such command",
		"keys rotate --gracious 0s":              "no help text has the flag --gracious",
		"serve --plan pro":                       "no help text has the flag --plan",
		"--frobnicate":                           "no help text has the flag --frobnicate",
		"make frobnicate":                        "the Makefile has no such target",
	} {
		if got := wrongCommand(span, commands, everything); got != want {
			t.Errorf("`%s`: got %q, want %q", span, got, want)
		}
	}
}

// binaryOnly is a directory with nothing but the binary.
func binaryOnly(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	bin := filepath.Join(dir, "bin")
	if err := os.Mkdir(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	// This is a link, because a file that was just written may still be open in a child
	// process of another test, and then can't be executed.
	if err := os.Symlink(binary, filepath.Join(bin, "animalstore")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// TestBrokenDocumentsGoRed breaks a document in every way that must be detected.
// Documents are written with ”' for ```.
func TestBrokenDocumentsGoRed(t *testing.T) {
	t.Parallel()
	testenv.Slow(t)
	const serve = "'''sh terminal\nbin/animalstore serve\n'''\n"
	const key = "'''sh\nexport ANIMALSTORE_API_KEY=$(bin/animalstore keys create --name me)\n'''\n"
	const pets = `curl -H "Authorization: Bearer $ANIMALSTORE_API_KEY" http://127.0.0.1:8080/v1/pets`
	// In the first attempt Redis is late.
	const late = "'''sh terminal\nredis-server --port 6379 --save '' --pidfile \"$PWD/redis.pid\"\n'''\n" +
		"'''sh terminal\nbin/animalstore serve --redis redis://127.0.0.1:6379\n'''\n" + key +
		"'''sh\nn=$((${n:-0} + 1))\n[ $n = 2 ] || kill -STOP $(cat redis.pid)\n" + pets + "\nkill -CONT $(cat redis.pid)\necho $n\n'''\n"
	tests := []struct {
		name     string
		document string
		want     string // in the one problem; "" where there is none
	}{
		{"a correct document", serve + key + "'''sh\n" + pets + "\n'''\n\n'''json output\n[]\n'''\n", ""},
		{"a command that fails", "'''sh\ntrue\n'''\n\n'''sh\necho before\nfalse\necho after\n'''\n", "6: the session ends here: exit status 1"},
		{"a command that does not exist", "'''sh\nanimalstoer serve\n'''\n", "animalstoer: command not found"},
		{"a flag that does not exist", "'''sh\nbin/animalstore keys list --jason\n'''\n", "has no flag --jason"},
		{"a failure in a pipe", "'''sh\nfalse | cat\n'''\n", "2: the session ends here"},
		{"a variable that is not set", "'''sh\necho $NOTHING_OF_THIS_NAME\n'''\n", "unbound variable"},
		{"a session that ends early", "'''sh\nexit 0\n'''\n\n'''sh\nfalse\n'''\n", "2: the session ends here"},
		{"a response that is an error", serve + "'''sh\ncurl http://127.0.0.1:8080/v1/pets\n'''\n", "missing_api_key"},
		{"a server that does not start", "'''sh terminal\nbin/animalstore serve --database sqlite:nowhere/store.db\n'''\n", "does not exist"},
		{"a variable of another terminal", "'''sh\nexport DIR=here\nmkdir here\n'''\n\n'''sh terminal\nbin/animalstore serve --database sqlite:$DIR/store.db\n'''\n", "DIR: unbound variable"},
		{"different output", "'''sh\necho one\n'''\n\n'''text output\ntwo\n'''\n", "the document shows, at 6:\n\ttwo"},
		{"an output with more", "'''sh\necho one; echo two\n'''\n\n'''text output\none\n'''\n", "prints:\n\tone\n\ttwo"},
		{"a step in which Redis was late", late + "\n'''text output\n[]\n2\n'''\n", ""},
		{"an output of nothing", "'''text output\none\n'''\n", "no command before this output"},
		{"different output in a terminal", serve + "\n'''text output\nanimalstore (production) is steady.\n...\n'''\n", "is ready."},
		{"Go that does not compile", "# A\n\n'''go\nc.ListDogs(ctx)\n'''\n", "red.md:4: c.ListDogs undefined"},
		{"Go that fails", serve + key + "'''go\n_, err := c.FindPet(ctx, 1)\nreturn err\n'''\n", "pet_not_found"},
		{"Go that prints something else", serve + key + "'''go\nfmt.Println(c.BaseURL())\n'''\n\n'''text output\nhttp://localhost\n'''\n", "prints:\n\thttp://127.0.0.1:8080/v1"},
		{"a file that is used", "'''sh\nmkdir -p a\n'''\n\n'''ini file=a/b.ini\n[$x]\n'''\n\n'''sh\ncat a/b.ini\n'''\n\n'''text output\n[$x]\n'''\n", ""},
		{"broken JSON", "'''json\n{\"a\":}\n'''\n", "1: this isn't valid JSON"},
		{"a command that is only shown", "'''text\nmake test\n'''\n", `"make " is a command`},
		{"a block without a language", "'''\nmake test\n'''\n", "1: no rule for a block"},
		{"a block without a rule", "'''sh sometimes\ntrue\n'''\n", "1: no rule for a block"},
		{"an exemption", "'''sh not run: it never ends\nfalse\n'''\n", ""},
		{"an exemption without a reason", "'''sh not run:\nfalse\n'''\n", "the reason is missing"},
		{"a fence that would be overlooked", "- item\n\n  '''sh\n  false\n  '''\n", "3: a fence is"},
		{"a block without an end", "'''sh\ntrue\n", "1: the block does not end"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got := strings.Join(tryDocument(t, "red.md", strings.ReplaceAll(test.document, "'''", "```"), binaryOnly), "\n")
			if test.want == "" && got != "" || !strings.Contains(got, test.want) || test.want != "" && got == "" {
				t.Errorf("got problems %q, want %q", got, test.want)
			}
		})
	}
}

// TestSessionsEndWhatTheyStart: no process outlives a document's session.
func TestSessionsEndWhatTheyStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// It ignores the end of its terminal, as servers may.
	document := "```sh\n(trap '' HUP; touch deaf; exec sleep 1000) >/dev/null 2>&1 &\necho $! >pid\nuntil [ -e deaf ]; do sleep 0.01; done\n```\n"
	if problems := tryDocument(t, "background.md", document, func(*testing.T) string { return dir }); problems != nil {
		t.Fatal(problems)
	}
	text, err := os.ReadFile(filepath.Join(dir, "pid"))
	if err != nil {
		t.Fatal(err)
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the process in the background is gone", func() bool {
		return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || isZombie(pid)
	})
}

// isZombie reports whether a process has ended and only waits for its parent, which may
// be a container's first process that never reaps it.
func isZombie(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "Z")
}
