package cli

import "testing"

func TestNearest(t *testing.T) {
	commands := []string{"list", "show", "get", "create", "add", "set", "remove", "delete", "rm", "set-plan"}
	for word, want := range map[string]string{
		"lits":    "list", // two letters swapped are one edit
		"lst":     "list",
		"shwo":    "show",
		"creat":   "create",
		"craete":  "create",
		"remvoe":  "remove",
		"delet":   "delete",
		"setplan": "set-plan",
		"ls":      "", // as far from "list" as from "rm"
		"frob":    "",
		"":        "",
		"xxxxxx":  "",
	} {
		if got := nearest(word, commands); got != want {
			t.Errorf("nearest(%q) = %q, want %q", word, got, want)
		}
	}
}
