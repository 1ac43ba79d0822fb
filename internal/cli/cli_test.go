package cli

import (
	"errors"
	"slices"
	"testing"

	"github.com/spf13/cobra"
)

type colour string

// newCommand is a command with a flag of each kind and with subcommands.
func newCommand() (*cobra.Command, *colour, *IDList) {
	var paint colour
	var ids IDList
	cmd := &cobra.Command{Use: "shop", Annotations: map[string]string{"remove": "shops can't be removed"}}
	RegisterOneOf(cmd, &paint, []colour{"red", "green", "blue"}, "colour", "its colour")
	cmd.Flags().Var(&ids, "id", "ids")
	cmd.Flags().Int("limit", 0, "how many")
	cmd.Flags().Bool("all", false, "all")
	cmd.AddCommand(&cobra.Command{Use: "list", Aliases: VerbAliases["list"], Run: func(*cobra.Command, []string) {}})
	return cmd, &paint, &ids
}

func TestFlagError(t *testing.T) {
	for _, test := range []struct{ arg, want string }{
		{"--colour=pink", `--colour must be red, green or blue, not "pink". See "shop --help"`},
		{"--id=1,x", `--id must be ids: positive numbers separated by commas, not "1,x". See "shop --help"`},
		{"--limit=many", `--limit must be a whole number, not "many". See "shop --help"`},
		{"--limit=99999999999999999999", `--limit must be a number closer to 0, not "99999999999999999999". See "shop --help"`},
		{"--all=perhaps", `--all must be true or false, not "perhaps". See "shop --help"`},
		{"--limit", `--limit needs a value. See "shop --help"`},
		{"--color", `"shop" has no flag --color. Did you mean --colour?`},
		{"--zzzzzz", `"shop" has no flag --zzzzzz. See "shop --help"`},
		{"-7", `-7 looks like a flag: write -- before a negative id. See "shop --help"`},
	} {
		cmd, _, _ := newCommand()
		err := cmd.ParseFlags([]string{test.arg})
		if err == nil {
			t.Errorf("%s: got no error", test.arg)
			continue
		}
		if got := FlagError(cmd, err).Error(); got != test.want {
			t.Errorf("%s:\n got %s\nwant %s", test.arg, got, test.want)
		}
	}
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
	if *paint != "red" || ids.String() != "7" || Given(cmd, "colour") || !Given(cmd, "id") || Given(cmd, "none") {
		t.Errorf("got %q and %s, given %t and %t, want red from the environment and 7 from the flag", *paint, ids, Given(cmd, "colour"), Given(cmd, "id"))
	}
	t.Setenv("ANIMALSTORE_COLOUR", "pink")
	cmd, _, _ = newCommand()
	const want = `the environment variable ANIMALSTORE_COLOUR: --colour must be red, green or blue, not "pink"`
	if err := ReadEnvironment(cmd); err == nil || err.Error() != want {
		t.Errorf("got %v\nwant %s", err, want)
	}
}

func TestUnknownCommand(t *testing.T) {
	for name, want := range map[string]string{
		"lst":    `"shop" has no command "lst". Did you mean "shop list"?`,
		"zzzzzz": `"shop" has no command "zzzzzz". See "shop --help"`,
		"remove": "shops can't be removed",
		"rm":     "shops can't be removed",
	} {
		cmd, _, _ := newCommand()
		if got := unknownCommand(cmd, name).Error(); got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
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

// TestArguments: a mistake in the arguments says what they should be.
func TestArguments(t *testing.T) {
	for _, test := range []struct {
		name  string
		check cobra.PositionalArgs
		args  []string
		want  string
	}{
		{"one id", OneID("shop", "shops"), []string{"-7"}, ""},
		{"no id", OneID("shop", "shops"), nil, `name the shop by its id: "animalstore shops list" shows them`},
		{"two ids", OneID("shop", "shops"), []string{"1", "2"}, `name the shop by its id: "animalstore shops list" shows them`},
		{"a name", OneID("shop", "shops"), []string{"corner"}, `"corner" isn't a valid id: "animalstore shops list" shows the ids`},
		{"some ids", SomeIDs("shops", 2), []string{"1", "2"}, ""},
		{"none of some", SomeIDs("shops", 2), nil, `name the shops by their ids: "animalstore shops list" shows them`},
		{"too many", SomeIDs("shops", 2), []string{"1", "2", "3"}, "at most 2 shops can be removed at once, not 3"},
		{"a name among ids", SomeIDs("shops", 2), []string{"1", "corner"}, `"corner" isn't a valid id: "animalstore shops list" shows the ids`},
		{"no arguments", NoArguments, nil, ""},
		{"an argument", NoArguments, []string{"corner"}, `"shop" takes no arguments, but got "corner". See "shop --help"`},
		{"a file", OneFile("name one file"), []string{"pets.csv"}, ""},
		{"an empty file", OneFile("name one file"), []string{""}, "name one file"},
	} {
		cmd, _, _ := newCommand()
		err := test.check(cmd, test.args)
		if test.want == "" && err != nil || test.want != "" && (err == nil || err.Error() != test.want) {
			t.Errorf("%s:\n got %v\nwant %s", test.name, err, test.want)
		}
		if err != nil && !errors.As(err, new(UsageError)) {
			t.Errorf("%s: got %T, want a UsageError", test.name, err)
		}
	}
	if got := IDs([]string{"3", "1", "3"}); !slices.Equal(got, []int64{3, 1}) {
		t.Errorf("got ids %v, want 3 and 1", got)
	}
}
