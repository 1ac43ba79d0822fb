package petfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"animalstore"
)

// TestCount: the number of pets, which isn't the number of lines, is known before the
// first one is read.
func TestCount(t *testing.T) {
	for name, test := range map[string]struct {
		content string
		want    int64
	}{
		"empty.csv":       {"", 0},
		"header.csv":      {"name,categoryId\n", 0},
		"two.csv":         {"name,categoryId\nRex,7\nMia,2\n", 2},
		"unfinished.csv":  {"name,categoryId\nRex,7\nMia,2", 2},
		"breaks.csv":      {"name,categoryId\n\"Rex\nthe \"\"dog\"\"\n\n\",7\n\r\nMia,2\r\n", 2},
		"refused.csv":     {"name,categoryId\nRex,x\n", 1},
		"two.jsonl":       {"{\"name\":\"Rex\"}\n\n{\"name\":\"\\\"\"}", 2},
		"json-in-a-file":  {"\ufeff{\"name\":\"Rex\"}\n{\"name\":\"Mia\"}\n", 2},
		"csv-in-a-file":   {"\ufeffname,categoryId\nRex,7\n", 1},
		"one-broken.json": {"{\"name\":\"Rex\n{}\n", 2},
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(test.content), 0o666); err != nil {
			t.Fatal(err)
		}
		if got := countPets(path, FormatOf(name)); got != test.want {
			t.Errorf("%s: got %d pets, want %d", name, got, test.want)
		}
	}
}

// TestQuoteNotClosed: an unclosed quote is reported where it was opened, and the lines up to
// the next quote are refused with it.
func TestQuoteNotClosed(t *testing.T) {
	for name, test := range map[string]struct {
		content string
		want    []string
	}{
		"closed wrongly": {"\"Rex,7\nMia,x\nTom,3\n\"Ann\",4\nZoe,5\nLeo,y\n", []string{"2 refused", "6 Zoe", "7 refused"}},
		"until the end":  {"Ann,4\n\"Rex,7\nMia,x\r\n\nTom\n", []string{"2 Ann", "3 refused"}},
		"in one line":    {"x\"y,1\n\"x\"y,1\nTom,3\n", []string{"2 refused", "3 refused", "4 Tom"}},
		"several lines":  {"\"Rex\n\"\"the dog\"\"\r\n\",7\nTom,3", []string{"2 Rex\n\"the dog\"\n", "5 Tom"}},
	} {
		rows, err := NewReader(strings.NewReader("name,categoryId\n"+test.content), CSV)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for {
			row, err := rows.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			text := row.Pet.Name
			if row.Err != nil {
				text = "refused"
			}
			got = append(got, fmt.Sprint(row.Line, " ", text))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got\n%q, want\n%q", name, got, test.want)
		}
	}
}

// TestLongRow: the import ends at a row that is too long to keep in memory.
func TestLongRow(t *testing.T) {
	for _, content := range []string{strings.Repeat("x", 2*maxRow) + ",7\n", "\"Rex,7\n" + strings.Repeat("Tom,3\n", maxRow/3)} {
		rows, err := NewReader(strings.NewReader("name,categoryId\n"+content), CSV)
		if err != nil {
			t.Fatal(err)
		}
		if row, err := rows.Next(); !errors.Is(err, errRowTooLong) {
			t.Errorf("%.20q: got %+v, %v, want an error", content, row, err)
		}
	}
}

// TestNoTemporaryNames: errors name the requested file, not the temporary file next to
// it.
func TestNoTemporaryNames(t *testing.T) {
	missing, lost := filepath.Join(t.TempDir(), "missing"), t.TempDir()
	for name, err := range map[string]error{
		filepath.Join(missing, "pets.csv"):          Export(filepath.Join(missing, "pets.csv"), nil, CSV, func(func(animalstore.Pet, error) bool) {}, func() {}),
		filepath.Join(missing, "pets.csv.progress"): NewJournal(filepath.Join(missing, "pets.csv")).save(),
		filepath.Join(lost, "pets.csv"):             Export(filepath.Join(lost, "pets.csv"), nil, CSV, func(func(animalstore.Pet, error) bool) { os.RemoveAll(lost) }, func() {}),
	} {
		var file Error
		if !errors.As(err, &file) || !strings.Contains(err.Error(), name+":") {
			t.Errorf("got %v, want an error about %s", err, name)
		}
	}
}
