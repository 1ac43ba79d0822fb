package main

import (
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"

	"animalstore"
	"animalstore/internal/terminal"
)

// TestListReadsFewPets: a list reads no more than it prints, in pages as large as
// possible, because each request counts against the key's limits.
func TestListReadsFewPets(t *testing.T) {
	onTerminal := terminal.Screen{Terminal: true}
	for _, test := range []struct {
		flags    listFlags
		screen   terminal.Screen
		pageSize int
		read     int
		lines    int // with a header on a terminal
	}{
		{listFlags{limit: 20}, terminal.Screen{}, 20, 20, 20},
		{listFlags{limit: 20}, onTerminal, 20, 20, 21},
		{listFlags{limit: 200}, terminal.Screen{}, 100, 200, 200},
		{listFlags{limit: 1000}, onTerminal, 100, 250, 251},
		{listFlags{limit: 20, all: true}, terminal.Screen{}, 100, 250, 250},
	} {
		name := fmt.Sprintf("limit %d, all %t, terminal %t", test.flags.limit, test.flags.all, test.screen.Terminal)
		var out strings.Builder
		pageSize, read := 0, 0
		p := &terminal.Printer{Out: &out, Notes: io.Discard, Screen: test.screen}
		err := pets.printPages(p, &test.flags, pets.columns, func(size int) iter.Seq2[animalstore.Pet, error] {
			pageSize = size
			return func(yield func(animalstore.Pet, error) bool) {
				for read < 250 {
					if read++; !yield(animalstore.Pet{ID: int64(read)}, nil) {
						return
					}
				}
			}
		})
		if lines := strings.Count(out.String(), "\n"); err != nil || pageSize != test.pageSize || read != test.read || lines != test.lines {
			t.Errorf("%s: got %d pets in pages of %d and %d lines (%v), want %d, %d and %d", name, read, pageSize, lines, err, test.read, test.pageSize, test.lines)
		}
	}
}
