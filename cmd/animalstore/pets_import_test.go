package main

import (
	"errors"
	"io"
	"strings"
	"testing"

	"animalstore"
	"animalstore/client"
)

// TestEndedEarly: an import is continued unless its first request was refused for good.
func TestEndedEarly(t *testing.T) {
	none, some, unknown := client.PetImport{}, client.PetImport{Existing: 100}, client.PetImport{Unknown: 100}
	for _, test := range []struct {
		status int // 0: no response
		done   client.PetImport
		want   bool
	}{
		{400, none, false}, {403, none, false}, {422, none, false},
		{400, some, true}, {403, some, true}, {422, some, true}, {403, unknown, true},
		{0, none, true}, {429, none, true}, {500, none, true}, {503, none, true},
	} {
		err := errors.New("no response")
		if test.status > 0 {
			err = &client.Error{Status: test.status, Err: animalstore.Errorf(animalstore.InternalError, "refused")}
		}
		got := endedEarly(test.done, err)
		if !errors.Is(got, err) || errors.As(got, new(incomplete)) != test.want {
			t.Errorf("status %d after %+v: got %#v, want it to be continued: %t", test.status, test.done, got, test.want)
		}
	}
}

// TestImportNotUTF8: a file in another encoding is one message, which says how to save it.
func TestImportNotUTF8(t *testing.T) {
	for content, want := range map[string]string{
		"name,categoryId\n" + strings.Repeat("Zo\xeb,1\n", 300): "line 2 ",
		"\xff\xfen\x00a\x00": "UTF-16",
	} {
		root := newCommand()
		root.SetArgs([]string{"pets", "import", "-", "--url", "http://127.0.0.1:1"}) // nothing listens there
		root.SetIn(strings.NewReader(content))
		var stderr strings.Builder
		root.SetOut(io.Discard)
		root.SetErr(&stderr)
		err := root.ExecuteContext(t.Context())
		if err == nil || !strings.Contains(message(err), want) || !strings.Contains(message(err), `"CSV UTF-8"`) || stderr.String() != "" {
			t.Errorf("%.20q: got %v and %q, want one message with %q", content, err, stderr.String(), want)
		}
	}
}
