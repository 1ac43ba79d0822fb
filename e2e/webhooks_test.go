package e2e

import (
	"strings"
	"testing"
)

// TestWebhookGuide: the receiver in Go in docs/webhooks.md is the one that runs, in the
// examples of client/webhook. clients/conformance runs the others.
func TestWebhookGuide(t *testing.T) {
	t.Parallel()
	blocks, problems := readBlocks(string(mustRead(t, "../docs/webhooks.md")))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var shown []string
	for _, b := range blocks {
		if b.lang == "go" {
			shown = append(shown, b.text)
		}
	}
	if want := goReceiver(t, string(mustRead(t, "../client/webhook/example_test.go"))); len(shown) != 1 || shown[0] != want {
		t.Errorf("the guide shows:\n%s\nwant the receiver that is tested:\n%s", strings.Join(shown, "---\n"), want)
	}
}

// goReceiver returns the handler of ExampleVerify_receiver, as the body of a function.
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
