package e2e

import (
	"os"
	"strings"
	"testing"
)

// TestWebhookGuide: the receivers that docs/webhooks.md shows are those that run, in
// the examples of client/webhook and in interop.
func TestWebhookGuide(t *testing.T) {
	t.Parallel()
	read := func(path string) string {
		t.Helper()
		content, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	blocks, problems := readBlocks(read("../docs/webhooks.md"))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	shown := map[string][]string{}
	for _, b := range blocks {
		shown[b.lang] = append(shown[b.lang], b.text)
	}
	for lang, want := range map[string]string{
		"go":     goReceiver(t, read("../client/webhook/example_test.go")),
		"js":     read("../interop/webhooks-js/receiver.js"),
		"python": read("../interop/webhooks-python/receiver.py"),
	} {
		if got := shown[lang]; len(got) != 1 || got[0] != want {
			t.Errorf("the guide shows in %s:\n%s\nwant the receiver that is tested:\n%s", lang, strings.Join(got, "---\n"), want)
		}
	}
}

// goReceiver is the handler of ExampleVerify_receiver, as the body of a function.
func goReceiver(t *testing.T, example string) string {
	t.Helper()
	const first, last = "\thook := func(", "\n\t}\n"
	_, rest, begins := strings.Cut(example, first)
	code, _, ends := strings.Cut(rest, last)
	if !begins || !ends {
		t.Fatal("the example has no handler named hook")
	}
	return strings.TrimPrefix(strings.ReplaceAll("\n"+first+code+last, "\n\t", "\n"), "\n")
}
