package main

import (
	"io"
	"os"
	"strings"
	"testing"
)

// TestMistakes: after a mistake in the command line, nothing is sent or created, and the
// message names what is wrong. See testdata/mistakes.txt.
func TestMistakes(t *testing.T) {
	rows, err := os.ReadFile("testdata/mistakes.txt")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(keyVariable, ownerKey)
	t.Setenv("ANIMALSTORE_URL", "http://127.0.0.1:1") // nothing listens there
	t.Chdir(t.TempDir())
	for row := range strings.Lines(string(rows)) {
		line, names, found := strings.Cut(row, " | ")
		if !found { // empty, or a comment
			continue
		}
		args := strings.Fields(line)
		for i, arg := range args {
			args[i] = strings.Trim(arg, "'")
		}
		root := newCommand()
		root.SetArgs(args)
		root.SetIn(strings.NewReader(""))
		root.SetOut(io.Discard)
		err := root.ExecuteContext(t.Context())
		if err == nil || exitCode(err) != exitUsage {
			t.Errorf("%s: got %v, want exit code %d", line, err, exitUsage)
			continue
		}
		rest := message(err)
		for name := range strings.FieldsSeq(names) {
			_, after, found := strings.Cut(rest, name)
			if !found {
				t.Errorf("%s: got %q, want %s in it", line, message(err), name)
			}
			rest = after
		}
		if strings.Contains(message(err), "hunter2") {
			t.Errorf("%s: got the password in %q", line, message(err))
		}
	}
	if files, err := os.ReadDir("."); err != nil || len(files) > 0 {
		t.Errorf("got the files %v (%v), want none", files, err)
	}
}
