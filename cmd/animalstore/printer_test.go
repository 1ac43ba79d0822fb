package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/client/clienttest"
)

// TestListAsksForNoMore: a list costs as few requests as it can, for each counts
// against the key.
func TestListAsksForNoMore(t *testing.T) {
	var mu sync.Mutex
	var asked []string
	server := clienttest.New(t, clienttest.WithMiddleware(func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodGet {
				mu.Lock()
				asked = append(asked, r.URL.Query().Get("limit"))
				mu.Unlock()
			}
			h.ServeHTTP(w, r)
		})
	}))
	var adding sync.WaitGroup
	for range 50 {
		adding.Go(func() {
			for range 5 {
				if _, err := server.Client.CreatePet(t.Context(), animalstore.NewPet{Name: "Rex", CategoryID: 1}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	adding.Wait()
	onTerminal := screen{terminal: true}
	tests := []struct {
		flags  listFlags
		screen screen
		asked  string
		rows   int
		note   string
	}{
		{listFlags{limit: 20}, screen{}, "20", 20, ""},
		{listFlags{limit: 20}, onTerminal, "21", 21, "There are more pets: use --limit N or --all.\n"},
		{listFlags{limit: 100}, screen{}, "100", 100, ""},
		{listFlags{limit: 100}, onTerminal, "100", 101, "There may be more pets: use --limit N or --all.\n"},
		{listFlags{limit: 200}, onTerminal, "100 100", 201, "There may be more pets: use --limit N or --all.\n"},
		{listFlags{limit: 249}, onTerminal, "100 100 100", 250, "There are more pets: use --limit N or --all.\n"},
		{listFlags{limit: 150}, screen{}, "100 100", 150, ""},
		{listFlags{limit: 250}, onTerminal, "100 100 100", 251, ""},
		{listFlags{limit: 1000}, screen{}, "100 100 100", 250, ""},
		{listFlags{limit: 20, all: true}, screen{}, "100 100 100", 250, ""},
	}
	for _, test := range tests {
		name := fmt.Sprintf("limit %d, all %t, terminal %t", test.flags.limit, test.flags.all, test.screen.terminal)
		asked = nil
		var out, notes bytes.Buffer
		p := &printer{out: &out, notes: &notes, screen: test.screen}
		err := printAll(p, &test.flags, "pets", petColumns, func(pageSize int) iter.Seq2[animalstore.Pet, error] {
			return server.Client.ListPets(t.Context(), client.PetQuery{PageSize: pageSize})
		})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := strings.Join(asked, " "); got != test.asked {
			t.Errorf("%s: got requests with limits %s, want %s", name, got, test.asked)
		}
		if got := strings.Count(out.String(), "\n"); got != test.rows {
			t.Errorf("%s: got %d lines, want %d", name, got, test.rows)
		}
		if got := notes.String(); got != test.note {
			t.Errorf("%s: got the note %q, want %q", name, got, test.note)
		}
	}
}

// manyPets lists n pets and then fails, if err is not nil.
func manyPets(n int, err error) iter.Seq2[animalstore.Pet, error] {
	return func(yield func(animalstore.Pet, error) bool) {
		for i := range n {
			if !yield(animalstore.Pet{ID: int64(i + 1), Name: "Rex", Status: animalstore.PetSold}, nil) {
				return
			}
		}
		if err != nil {
			yield(animalstore.Pet{}, err)
		}
	}
}

// TestListStreams: what is printed of a list is out before the rest is fetched,
// so that neither a person nor memory waits for the end.
func TestListStreams(t *testing.T) {
	for name, p := range map[string]printer{"rows": {}, "table": {screen: screen{terminal: true}}, "JSON": {json: true}} {
		var out bytes.Buffer
		p.out = &out
		listed := 0
		err := printList(&p, func(yield func(animalstore.Pet, error) bool) {
			for pet, err := range manyPets(1000, nil) {
				if behind := listed - strings.Count(out.String(), "Rex"); behind > maxPage {
					t.Errorf("%s: got %d pets that are not printed yet, want %d at most", name, behind, maxPage)
					return
				}
				listed++
				if !yield(pet, err) {
					return
				}
			}
		}, petColumns)
		if printed := strings.Count(out.String(), "Rex"); err != nil || printed != 1000 {
			t.Errorf("%s: got %d pets and the error %v, want 1000", name, printed, err)
		}
	}
}

// TestListFails: what came before an error is printed, and a JSON array is left
// open, so that a part is not taken for the whole.
func TestListFails(t *testing.T) {
	failed := errors.New("failed")
	for name, p := range map[string]printer{"rows": {}, "table": {screen: screen{terminal: true}}, "JSON": {json: true}} {
		var out bytes.Buffer
		p.out = &out
		if err := printList(&p, manyPets(3, failed), petColumns); !errors.Is(err, failed) {
			t.Errorf("%s: got the error %v, want %v", name, err, failed)
		}
		if got := strings.Count(out.String(), "Rex"); got != 3 {
			t.Errorf("%s: got %d pets, want the 3 before the error:\n%s", name, got, out.String())
		}
		if p.json && json.Valid(out.Bytes()) {
			t.Errorf("%s: got valid JSON, want an array that is left open:\n%s", name, out.String())
		}
	}
}

// full is a disk without room.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left") }

func TestListCannotBeWritten(t *testing.T) {
	for name, p := range map[string]printer{"rows": {}, "table": {screen: screen{terminal: true}}, "JSON": {json: true}} {
		p.out = full{}
		for _, n := range []int{1, 1000} {
			if err := printList(&p, manyPets(n, nil), petColumns); err == nil {
				t.Errorf("%s of %d: got no error, want one", name, n)
			}
		}
	}
}

func TestTable(t *testing.T) {
	cells := func(texts ...string) (row []cell) {
		for _, text := range texts {
			row = append(row, cell{text: text})
		}
		return row
	}
	tests := []struct {
		name   string
		screen screen
		rows   [][]cell
		want   string
	}{
		{"aligned", screen{}, [][]cell{cells("1", "Rex", "a"), cells("10", "Mia", "b")}, "1   Rex  a\n10  Mia  b\n"},
		{"wide characters", screen{}, [][]cell{cells("1", "柴犬", "a"), cells("2", "Rex!", "b"), cells("3", "é", "c")}, "1  柴犬  a\n2  Rex!  b\n3  é     c\n"},
		{"cut to the screen", screen{width: 20}, [][]cell{cells("1", "a very long name", "x")}, "1  a very long n…  x\n"},
		{"no narrower than can be read", screen{width: 5}, [][]cell{cells("1", "a very long name", "x")}, "1  a very lo…  x\n"},
		{"a wide character is not halved", screen{width: 17}, [][]cell{cells("1", "柴犬柴犬柴犬柴犬", "x")}, "1  柴犬柴犬柴…  x\n"},
		{"colour takes no room", screen{colour: true}, [][]cell{{{"a", red}, {text: "b"}}, cells("aa", "c")}, "\x1b[31ma\x1b[0m   b\naa  c\n"},
		{"no colour", screen{}, [][]cell{{{"a", red}, {text: "b"}}}, "a  b\n"},
	}
	for _, test := range tests {
		var out strings.Builder
		table := table{w: &out, screen: test.screen, shrink: 1}
		for _, row := range test.rows {
			table.add(row)
		}
		if err := table.flush(); err != nil || out.String() != test.want {
			t.Errorf("%s: got %q (%v), want %q", test.name, out.String(), err, test.want)
		}
	}
}

// TestTableKeepsItsShape: a later block is at least as wide as those before it.
func TestTableKeepsItsShape(t *testing.T) {
	var out strings.Builder
	err := printList(&printer{out: &out, screen: screen{terminal: true}}, func(yield func(animalstore.Pet, error) bool) {
		for i := range 2*maxPage + 1 {
			name := "Rex"
			if i == 0 {
				name = "Maximilian"
			}
			if !yield(animalstore.Pet{ID: 1, Name: name, Status: animalstore.PetSold}, nil) {
				return
			}
		}
	}, petColumns)
	if err != nil {
		t.Fatal(err)
	}
	for i, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		if got := strings.Index(line, "sold"); i > 0 && got != len("ID  Maximilian  CATEGORY  ") {
			t.Errorf("line %d: got %q, want the status below those before it", i, line)
		}
	}
}

func TestTimes(t *testing.T) {
	now := time.Date(2026, 2, 3, 4, 5, 6, 7e6, time.UTC)
	at := func(d time.Duration) animalstore.Time { return animalstore.At(now.Add(d)) }
	for _, test := range []struct{ got, want string }{
		{relative(animalstore.Time{}, now), "never"},
		{relative(at(0), now), "0 s ago"},
		{relative(at(-59*time.Second), now), "59 s ago"},
		{relative(at(-time.Minute), now), "1 min ago"},
		{relative(at(-47*time.Hour), now), "47 h ago"},
		{relative(at(-72*time.Hour), now), "3 d ago"},
		{relative(at(90*time.Minute), now), "in 1 h"},
		{when(at(0)), "2026-02-03 04:05:06"},
		{when(animalstore.Time{}), "never"},
		{span(1), "1 s"},
		{span(59 * time.Second), "59 s"},
		{span(60 * time.Second), "1 min 0 s"},
		{span(59*time.Minute + 59*time.Second + 1), "1 h 0 min"},
		{span(25*time.Hour + 30*time.Minute), "25 h 30 min"},
	} {
		if test.got != test.want {
			t.Errorf("got %q, want %q", test.got, test.want)
		}
	}
}

func TestWrapped(t *testing.T) {
	for _, test := range []struct {
		text  string
		width int
		want  string
	}{
		{"one two three", 0, "one two three"},
		{"one two three", 7, "one two\nthree"},
		{"one two three", 6, "one\ntwo\nthree"},
		{"one two three", 13, "one two three"},
		{"longer-than-the-screen it", 5, "longer-than-the-screen\nit"},
	} {
		if got := wrapped(test.text, test.width); got != test.want {
			t.Errorf("%q on %d columns: got %q, want %q", test.text, test.width, got, test.want)
		}
	}
}
