package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// eachCommand calls f for every visible command, including the root.
func eachCommand(cmd *cobra.Command, f func(*cobra.Command)) {
	f(cmd)
	for _, sub := range cmd.Commands() {
		if !sub.Hidden {
			eachCommand(sub, f)
		}
	}
}

// help is what a command's --help prints.
func help(t *testing.T, path string) string {
	t.Helper()
	root := newCommand()
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(&out)
	root.SetArgs(append(strings.Fields(path)[1:], "--help"))
	if err := root.Execute(); err != nil {
		t.Fatalf("%s --help: %v", path, err)
	}
	return out.String()
}

// TestHelp compares the help of every command with a file in testdata/help, because
// it is what people read first. go test ./cmd/animalstore -update rewrites the files.
func TestHelp(t *testing.T) {
	dir := filepath.Join("testdata", "help")
	if *update {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(dir, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	commands := 0
	eachCommand(newCommand(), func(cmd *cobra.Command) {
		got := help(t, cmd.CommandPath())
		file := filepath.Join(dir, strings.ReplaceAll(cmd.CommandPath(), " ", "-")+".txt")
		commands++
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
				t.Fatal(err)
			}
			return
		}
		want, err := os.ReadFile(file)
		if err != nil {
			t.Errorf("%v: create it with -update", err)
		} else if got != string(want) {
			t.Errorf("%s --help: got\n%s\nwant\n%s", cmd.CommandPath(), got, want)
		}
	})
	if files, err := os.ReadDir(dir); err != nil || len(files) != commands {
		t.Errorf("got %d files for %d commands (%v): use -update", len(files), commands, err)
	}
}

// TestHelpIsComplete checks that help has what a newcomer needs and fits on a screen.
func TestHelpIsComplete(t *testing.T) {
	root := newCommand()
	eachCommand(root, func(cmd *cobra.Command) {
		path := cmd.CommandPath()
		if cmd.Short == "" || strings.HasSuffix(cmd.Short, ".") {
			t.Errorf("%s: got the short description %q, want one without a full stop", path, cmd.Short)
		}
		if cmd != root && !strings.Contains(cmd.Example, "animalstore") {
			t.Errorf("%s: got the example %q, want one that can be pasted", path, cmd.Example)
		}
		for line := range strings.SplitSeq(help(t, path), "\n") {
			if n := utf8.RuneCountInString(line); n > 80 {
				t.Errorf("%s --help: got a line of %d columns, want %d at most:\n%s", path, n, 80, line)
			}
			if strings.TrimRight(line, " ") != line {
				t.Errorf("%s --help: got spaces at the end of %q, want none", path, line)
			}
		}
	})
}
