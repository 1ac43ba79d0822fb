package e2e

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// binaryOnly is a directory with nothing but the binary.
func binaryOnly(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	copyInto(t, binary, filepath.Join(dir, "bin", "animalstore"))
	return dir
}

// TestBrokenDocumentsGoRed breaks a document in each way that has to be noticed.
// A document is written with ”' for ```.
func TestBrokenDocumentsGoRed(t *testing.T) {
	t.Parallel()
	onlyForRelease(t, "runs broken documents")
	const serve = "'''sh terminal\nbin/animalstore serve\n'''\n"
	const key = "'''sh\nexport ANIMALSTORE_API_KEY=$(bin/animalstore keys create --name me)\n'''\n"
	const pets = `curl -H "Authorization: Bearer $ANIMALSTORE_API_KEY" http://127.0.0.1:8080/v1/pets`
	tests := []struct {
		name     string
		document string
		want     string // in the one problem; "" where there is none
	}{
		{"all is well", serve + key + "'''sh\n" + pets + "\n'''\n\n'''json output\n[]\n'''\n", ""},
		{"a command that fails", "'''sh\ntrue\n'''\n\n'''sh\necho before\nfalse\necho after\n'''\n", "6: the session ends here: exit status 1"},
		{"a command that does not exist", "'''sh\nanimalstoer serve\n'''\n", "animalstoer: command not found"},
		{"a flag that does not exist", "'''sh\nbin/animalstore keys list --jason\n'''\n", "has no flag --jason"},
		{"a failure in a pipe", "'''sh\nfalse | cat\n'''\n", "2: the session ends here"},
		{"a variable that is not set", "'''sh\necho $NOTHING_OF_THIS_NAME\n'''\n", "unbound variable"},
		{"an end before the end", "'''sh\nexit 0\n'''\n\n'''sh\nfalse\n'''\n", "2: the session ends here"},
		{"a response that is an error", serve + "'''sh\ncurl http://127.0.0.1:8080/v1/pets\n'''\n", "missing_api_key"},
		{"a server that does not start", "'''sh terminal\nbin/animalstore serve --database sqlite:nowhere/store.db\n'''\n", "does not exist"},
		{"a variable of another terminal", "'''sh\nexport DIR=here\nmkdir here\n'''\n\n'''sh terminal\nbin/animalstore serve --database sqlite:$DIR/store.db\n'''\n", "DIR: unbound variable"},
		{"another output", "'''sh\necho one\n'''\n\n'''text output\ntwo\n'''\n", "shown is, at 6:\n\ttwo"},
		{"an output with more", "'''sh\necho one; echo two\n'''\n\n'''text output\none\n'''\n", "prints:\n\tone\n\ttwo"},
		{"an output of nothing", "'''text output\none\n'''\n", "no command before this output"},
		{"another output of a terminal", serve + "\n'''text output\nanimalstore (production) is steady.\n...\n'''\n", "is ready."},
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

// TestSessionsEndWhatTheyStart checks that no process outlives a document's session.
func TestSessionsEndWhatTheyStart(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// It does not care that its terminal goes away, as servers may not.
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
	eventually(t, time.Minute, "the process in the background is gone", func() bool {
		return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || isZombie(pid)
	})
}

// isZombie reports whether a process has ended and only waits for its parent, which
// may be a container's first process that never asks.
func isZombie(pid int) bool {
	stat, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "stat"))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	return strings.HasPrefix(rest, "Z")
}
