package cli

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

type colour string

// newCommand is a command with a flag of each kind and with subcommands.
func newCommand() (*cobra.Command, *colour, *[]int64) {
	var paint colour
	var ids []int64
	cmd := &cobra.Command{Use: "shop"}
	RegisterOneOf(cmd, &paint, []colour{"red", "green", "blue"}, "colour", "its colour")
	RegisterIDs(cmd, &ids, "id", "ids")
	cmd.Flags().Int("limit", 0, "how many")
	cmd.Flags().Bool("all", false, "all")
	cmd.AddCommand(&cobra.Command{Use: "list", Aliases: VerbAliases["list"], Run: func(*cobra.Command, []string) {}})
	return cmd, &paint, &ids
}

// TestEnvironment: a flag takes precedence over the environment.
func TestEnvironment(t *testing.T) {
	t.Setenv("ANIMALSTORE_COLOUR", "red")
	t.Setenv("ANIMALSTORE_ID", "1, 2")
	cmd, paint, ids := newCommand()
	if err := cmd.ParseFlags([]string{"--id", "7"}); err != nil {
		t.Fatal(err)
	}
	if err := ReadEnvironment(cmd); err != nil {
		t.Fatal(err)
	}
	if *paint != "red" || !slices.Equal(*ids, []int64{7}) || Given(cmd, "colour") || !Given(cmd, "id") || Given(cmd, "none") {
		t.Errorf("got %q and %v, given %t and %t, want red from the environment and 7 from the flag", *paint, *ids, Given(cmd, "colour"), Given(cmd, "id"))
	}
	t.Setenv("ANIMALSTORE_COLOUR", "pink")
	cmd, _, _ = newCommand()
	if err := ReadEnvironment(cmd); err == nil || !strings.Contains(err.Error(), "ANIMALSTORE_COLOUR") {
		t.Errorf("got %v, want an error about ANIMALSTORE_COLOUR", err)
	}
}

// TestEnvironmentFile: a variable with _FILE names a file with the value, and takes
// precedence over the variable itself, but not over a flag.
func TestEnvironmentFile(t *testing.T) {
	dir := t.TempDir()
	for name, content := range map[string]string{"red": "red\n", "blue": "blue\r\n", "empty": "\n", "pink": "pink"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o400); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name, variable, file string
		args                 []string
		want                 colour
	}{
		{"a file", "", "red", nil, "red"},
		{"CRLF", "", "blue", nil, "blue"},
		{"a file and the variable", "green", "red", nil, "red"},
		{"a file and a flag", "", "red", []string{"--colour", "green"}, "green"},
		{"a missing file and a flag", "", "missing", []string{"--colour", "green"}, "green"},
		{"an empty file", "green", "empty", nil, ""},
		{"a missing file", "green", "missing", nil, ""},
		{"a wrong value", "", "pink", nil, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Setenv("ANIMALSTORE_COLOUR_FILE", filepath.Join(dir, test.file))
			if test.variable != "" {
				t.Setenv("ANIMALSTORE_COLOUR", test.variable)
			}
			cmd, paint, _ := newCommand()
			if err := cmd.ParseFlags(test.args); err != nil {
				t.Fatal(err)
			}
			err := ReadEnvironment(cmd)
			if *paint != test.want || (test.want == "") != errors.As(err, new(UsageError)) {
				t.Errorf("got %q and error %v, want %q", *paint, err, test.want)
			}
		})
	}
}

// TestNearestFlag: for a flag that doesn't exist, the error names the one that was meant.
func TestNearestFlag(t *testing.T) {
	for arg, want := range map[string]string{
		"--limt=5": "limit", "--limti": "limit", "--Limit": "limit", "-limit": "limit", "-limit=5": "limit", "--lim": "limit",
		"--color": "colour", "--colours": "colour", "--ids": "id", "-al": "all", "--al": "all", "--idd=7": "id", "--a_ll": "all",
		"--fly": "", "-x": "", "-i": "", "--li": "", "--at": "", "--url": "", "--secret": "", "-7": "",
	} {
		cmd, _, _ := newCommand()
		cmd.Flags().Int("limits", 0, "")
		cmd.Flags().MarkHidden("limits")
		err := FlagError(cmd, cmd.ParseFlags([]string{arg}))
		suggests := strings.Contains(err.Error(), "Did you mean")
		if !errors.As(err, new(UsageError)) || suggests != (want != "") || suggests && !strings.Contains(err.Error(), "Did you mean --"+want+"?") {
			t.Errorf("%s: got %q, want the flag %q", arg, err, want)
		}
		if wrong, _, _ := strings.Cut(arg, "="); arg != "-7" && !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: got %q, want it to name what was wrong", arg, err)
		}
	}
}

// TestCompleteList: a value is offered once.
func TestCompleteList(t *testing.T) {
	offered, _ := CompleteList([]string{"read", "write", "admin"})(nil, nil, "write,r")
	if want := []string{"write,read", "write,admin"}; !slices.Equal(offered, want) {
		t.Errorf("got %q, want %q", offered, want)
	}
}

// TestArguments: a mistake in the arguments is a UsageError. TestMistakes in cmd has more.
func TestArguments(t *testing.T) {
	for name, err := range map[string]error{
		"too many ids":  SomeIDs("shops", 2)(nil, []string{"1", "2", "3"}),
		"a negative id": OneID("shop", "shops")(nil, []string{"-7"}),
		"an empty file": OneFile("name one file")(nil, []string{""}),
	} {
		if valid := name == "a negative id"; valid != (err == nil) || err != nil && !errors.As(err, new(UsageError)) {
			t.Errorf("%s: got %v, want valid: %t", name, err, valid)
		}
	}
}
