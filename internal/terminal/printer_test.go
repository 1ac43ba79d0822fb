package terminal

import (
	"bytes"
	"encoding/json"
	"errors"
	"iter"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

type pet struct {
	ID   int    `json:"id"`
	Name string `json:"name"`
}

var petColumns = []Column[pet]{
	{Title: "ID", Text: func(p pet) string { return strconv.Itoa(p.ID) }},
	{Title: "NAME", Text: func(p pet) string { return p.Name }},
	{Title: "STATUS", Text: func(pet) string { return "sold" }},
}

// listPets lists n pets and then fails, if err is not nil.
func listPets(n int, err error) iter.Seq2[pet, error] {
	return func(yield func(pet, error) bool) {
		for i := range n {
			if !yield(pet{i + 1, "Rex"}, nil) {
				return
			}
		}
		if err != nil {
			yield(pet{}, err)
		}
	}
}

var printers = map[string]Printer{"lines": {}, "table": {Screen: Screen{Terminal: true}}, "JSON": {JSON: true}}

// TestListStreams: entries are printed before the rest is fetched, so that output
// starts early and memory use stays small.
func TestListStreams(t *testing.T) {
	for name, p := range printers {
		var out bytes.Buffer
		p.Out = &out
		listed := 0
		err := PrintList(&p, func(yield func(pet, error) bool) {
			for entry, err := range listPets(1000, nil) {
				if behind := listed - strings.Count(out.String(), "Rex"); behind > block {
					t.Errorf("%s: got %d pets that are not printed yet, want at most %d", name, behind, block)
					return
				}
				listed++
				if !yield(entry, err) {
					return
				}
			}
		}, petColumns)
		if printed := strings.Count(out.String(), "Rex"); err != nil || printed != 1000 {
			t.Errorf("%s: got %d pets and the error %v, want 1000", name, printed, err)
		}
	}
}

// TestListEnds: the entries before an error are printed, and a JSON array is left open, so
// that a partial list isn't mistaken for the whole. An empty list is complete.
func TestListEnds(t *testing.T) {
	failed := errors.New("failed")
	for name, p := range printers {
		for n, end := range map[int]error{0: nil, 3: failed} {
			var out bytes.Buffer
			p.Out = &out
			if err := PrintList(&p, listPets(n, end), petColumns); !errors.Is(err, end) {
				t.Errorf("%s: got the error %v, want %v", name, err, end)
			}
			if got := strings.Count(out.String(), "Rex"); got != n {
				t.Errorf("%s: got %d pets, want %d:\n%s", name, got, n, out.String())
			}
			if whole := json.Valid(out.Bytes()); p.JSON && whole != (end == nil) || n == 0 && !p.JSON && out.Len() > 0 {
				t.Errorf("%s: got %q after the error %v", name, out.String(), end)
			}
		}
	}
}

// The clock stands still, because columns show how long ago something was.
func TestColumns(t *testing.T) { synctest.Test(t, testColumns) }

func testColumns(t *testing.T) {
	at := time.Date(2026, 2, 3, 4, 5, 6, 7e6, time.UTC)
	columns := []Column[time.Time]{
		{Title: "AT", Time: func(t time.Time) time.Time { return t }},
		{Title: "AGO", Time: func(time.Time) time.Time { return time.Now().Add(-90 * time.Minute) }, Relative: true},
		{Title: "ESC", Text: func(time.Time) string { return "\x1b" }},
	}
	for _, test := range []struct {
		screen Screen
		item   time.Time
		want   string
	}{
		{Screen{Terminal: true, Width: 36}, at, "AT                   AGO\n2026-02-03 04:05:06  1 h 30 min ago\n"},
		{Screen{Terminal: true, Width: 22}, time.Time{}, "AT     AGO\nnever  1 h 30 min ago\n"},
		{Screen{}, at, "2026-02-03T04:05:06.007Z\t"},
		{Screen{}, time.Time{}, "never\t"},
	} {
		var out strings.Builder
		err := PrintItem(&Printer{Out: &out, Screen: test.screen}, test.item, columns)
		if got := out.String(); err != nil || !strings.HasPrefix(got, test.want) {
			t.Errorf("got %q (%v), want %q", got, err, test.want)
		}
		if !test.screen.Terminal && !strings.HasSuffix(out.String(), "\t\\x1b\n") {
			t.Errorf("got %q, want an escaped column at the end", out.String())
		}
	}
}

func TestFields(t *testing.T) {
	fields := []Field{{Name: "Plan", Value: "free"}, {Name: "Banned", Value: "no\x1b", Colour: Red}}
	for _, test := range []struct {
		screen Screen
		want   string
	}{
		{Screen{}, "Plan\tfree\nBanned\tno\\x1b\n"},
		{Screen{Terminal: true}, "Plan    free\nBanned  no\\x1b\n"},
		{Screen{Terminal: true, Colour: true}, "Plan    free\nBanned  \x1b[31mno\\x1b\x1b[0m\n"},
	} {
		var out strings.Builder
		if err := (&Printer{Out: &out, Screen: test.screen}).PrintFields(fields); err != nil || out.String() != test.want {
			t.Errorf("got %q (%v), want %q", out.String(), err, test.want)
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
	for _, test := range []struct {
		name   string
		screen Screen
		rows   [][]cell
		want   string
	}{
		{"aligned", Screen{}, [][]cell{cells("1", "Rex", "a"), cells("10", "Mia", "b")}, "1   Rex  a\n10  Mia  b\n"},
		{"wide characters", Screen{}, [][]cell{cells("1", "柴犬", "a"), cells("2", "Rex!", "b"), cells("3", "é", "c")}, "1  柴犬  a\n2  Rex!  b\n3  é     c\n"},
		{"cut to the screen", Screen{Width: 28}, [][]cell{cells("1", "a name that is very long", "x")}, "1  a name that is very l…  x\n"},
		{"a wide character is not halved", Screen{Width: 26}, [][]cell{cells("1", "柴犬柴犬柴犬柴犬柴犬柴犬", "x")}, "1  柴犬柴犬柴犬柴犬柴…   x\n"},
		{"the last columns left out", Screen{Width: 25}, [][]cell{cells("1", "a name that is very long", "x")}, "1  a name that is very…\n"},
		{"colours have no width", Screen{Colour: true}, [][]cell{{{"a", Red}, {text: "b"}}, cells("aa", "c")}, "\x1b[31ma\x1b[0m   b\naa  c\n"},
		{"no colours", Screen{}, [][]cell{{{"a", Red}, {text: "b"}}}, "a  b\n"},
	} {
		var out strings.Builder
		test.screen.Terminal = true
		table := table{screen: test.screen}
		for _, row := range test.rows {
			table.add(row)
		}
		if err := table.flush(&out); err != nil || out.String() != test.want {
			t.Errorf("%s: got %q (%v), want %q", test.name, out.String(), err, test.want)
		}
	}
}
