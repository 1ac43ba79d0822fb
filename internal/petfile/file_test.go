package petfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"animalstore"
)

// TestRead reads the same pets from files of every kind.
func TestRead(t *testing.T) {
	rex, mia := animalstore.NewPet{Name: "Rex; the, dog", CategoryID: 7, Status: "sold"}, animalstore.NewPet{Name: "Mia", CategoryID: 2, Status: "available"}
	for name, content := range map[string]string{
		"comma.csv":     "name,categoryId,status\n\"Rex; the, dog\",7,sold\nMia,2,available\n",
		"semicolon.csv": "\ufeffID; Name ;CATEGORYID;Status;\"a,b,c,d,e\"\r\n1;\"Rex; the, dog\";7;sold;\r\n\r\n2;\"Mia\";2;;x",
		"pets.jsonl":    "{\"name\":\"Rex; the, dog\",\"categoryId\":7,\"status\":\"sold\"}\n\n{\"name\":\"Mia\",\"categoryId\":2}",
		"json":          "\ufeff{\"name\":\"Rex; the, dog\",\"categoryId\":7,\"status\":\"sold\"}\n{\"name\":\"Mia\",\"categoryId\":2}\n",
	} {
		got, mistakes, err := Read(strings.NewReader(content), FormatOf(name))
		if err != nil || len(mistakes) > 0 || !slices.Equal(got, []animalstore.NewPet{rex, mia}) {
			t.Errorf("%s: got %+v, %+v, %v, want %+v and %+v", name, got, mistakes, err, rex, mia)
		}
	}
	for _, header := range []string{"", "name", "Name,NAME,categoryId", "name;categoryId,status"} {
		if pets, _, err := Read(strings.NewReader(header), CSV); err == nil {
			t.Errorf("columns %q: got %+v, want an error", header, pets)
		}
	}
}

// TestNotUTF8: a CSV file in another encoding is one error, which names the first line that
// isn't UTF-8. A file that is UTF-8 is read, with a byte order mark or without.
func TestNotUTF8(t *testing.T) {
	header, rex := "name,categoryId\n", "Rex,7\n"
	manyRows := strings.Repeat(rex, 20_000)
	for name, test := range map[string]struct {
		content string
		line    int // 0: it is UTF-8
	}{
		"UTF-8":                         {header + "Zo\u00eb,7\n", 0},
		"UTF-8 with a mark":             {"\ufeff" + header + "Zo\u00eb,7", 0},
		"many rows":                     {header + manyRows + strings.Repeat("Zo\u00eb\u3000\U0001F436,7\n", 10_000), 0},
		"U+FFFD":                        {header + "a\ufffdb,1\n", 0},
		"Windows-1252":                  {header + rex + "Zo\xeb,7\n" + rex + "Fran\xe7ois,8\n", 3},
		"in the header":                 {"name,categoryId,Gr\xf6\xdfe\n" + rex, 1},
		"in another column":             {"name,categoryId,note\nRex,7,\x80\n", 2},
		"CRLF, in a quoted field":       {"name,categoryId\r\n\"Rex\r\nthe Zo\xeb\",7\r\n", 3},
		"after many rows":               {header + manyRows + "Zo\xeb,7\n", 20_002},
		"cut off at the end":            {header + "Rex,7\nZo\xc3", 3},
		"surrogates":                    {header + "\xed\xa0\x80,7", 2},
		"many mistakes, then an umlaut": {header + strings.Repeat("Rex,x\n", 3000) + "\xfc,7", 3002},
	} {
		for _, in := range []io.Reader{strings.NewReader(test.content), iotest.HalfReader(strings.NewReader(test.content))} {
			pets, mistakes, err := Read(in, CSV)
			var wrong encodingError
			switch {
			case test.line == 0 && (err != nil || len(mistakes) > 0 || len(pets) == 0):
				t.Errorf("%s: got %d pets, %v, %v, want pets", name, len(pets), mistakes, err)
			case test.line > 0 && (!errors.As(err, &wrong) || wrong.line != test.line || !strings.HasPrefix(err.Error(), "line ")):
				t.Errorf("%s: got %v, want an error about line %d", name, err, test.line)
			}
		}
	}
	for _, content := range []string{"\xff\xfen\x00a\x00", "\xfe\xff\x00n\x00a"} {
		for _, format := range []Format{CSV, JSONL, ""} {
			if pets, _, err := Read(strings.NewReader(content), format); !errors.Is(err, ErrUTF16) {
				t.Errorf("%q: got %v, %v, want %v", content, pets, err, ErrUTF16)
			}
		}
	}
}

// TestSameMessages: a pet in a CSV file is refused with the message of the same pet as JSON,
// which goes through the decoder and the validation of the API.
func TestSameMessages(t *testing.T) {
	long := strings.Repeat("x", animalstore.MaxNameLength+1)
	for csv, body := range map[string]string{
		`,1,`:                    `{"name":"","categoryId":1}`,
		long + `,1,`:             `{"name":"` + long + `","categoryId":1}`,
		`x,many,`:                `{"name":"x","categoryId":"many"}`,
		`x,1.5,`:                 `{"name":"x","categoryId":1.5}`,
		`x,9223372036854775808,`: `{"name":"x","categoryId":9223372036854775808}`,
		`x,1,asleep`:             `{"name":"x","categoryId":1,"status":"asleep"}`,
	} {
		_, got, err := Read(strings.NewReader("name,categoryId,status\n"+csv), CSV)
		_, want, otherErr := Read(strings.NewReader(body), JSONL)
		if err := errors.Join(err, otherErr); err != nil || len(got) != 1 || len(want) != 1 || got[0].Err.Error() != want[0].Err.Error() {
			t.Errorf("%.80s: got %v, %v, want %v", csv, got, err, want)
		}
	}
}

// TestFormulas: no cell of an export begins like a formula, and every name comes back.
func TestFormulas(t *testing.T) {
	var pets []animalstore.Pet
	for _, name := range []string{"=1+1", "+1", "-1", "@x", "\tx", "\rx", "'=1", "''-1", "'tis", "'", "Rex", "x=1"} {
		pets = append(pets, animalstore.Pet{ID: 1, Name: name, CategoryID: 1, Status: "sold"})
	}
	var file strings.Builder
	err := Export("-", &file, CSV, func(yield func(animalstore.Pet, error) bool) {
		for _, pet := range pets {
			yield(pet, nil)
		}
	}, func() {})
	if err != nil {
		t.Fatal(err)
	}
	if cell := regexp.MustCompile("(?m)^1,\"?[=+@\t\r-]").FindString(file.String()); cell != "" {
		t.Errorf("a spreadsheet would run %q in\n%s", cell, file.String())
	}
	got, mistakes, err := Read(strings.NewReader(file.String()), CSV)
	if err != nil || len(mistakes) > 0 || len(got) != len(pets) {
		t.Fatalf("got %+v, %+v, %v", got, mistakes, err)
	}
	for i, pet := range pets {
		if got[i].Name != pet.Name {
			t.Errorf("got %q back, want %q", got[i].Name, pet.Name)
		}
	}
}

// TestExportMode: a replaced file keeps its mode, and a new one gets what the umask leaves.
func TestExportMode(t *testing.T) {
	plain := filepath.Join(t.TempDir(), "plain")
	if err := os.WriteFile(plain, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	private := filepath.Join(t.TempDir(), "private.csv")
	if err := os.WriteFile(private, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	shared := filepath.Join(t.TempDir(), "shared.csv")
	if err := errors.Join(os.WriteFile(shared, nil, 0o600), os.Chmod(shared, 0o666)); err != nil {
		t.Fatal(err)
	}
	mode := func(name string) fs.FileMode {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		return info.Mode()
	}
	for name, want := range map[string]fs.FileMode{
		filepath.Join(t.TempDir(), "new.csv"): mode(plain),
		private:                               0o600,
		shared:                                0o666,
	} {
		if err := Export(name, nil, CSV, func(func(animalstore.Pet, error) bool) {}, func() {}); err != nil {
			t.Fatal(err)
		}
		if got := mode(name); got != want {
			t.Errorf("%s: got mode %v, want %v", filepath.Base(name), got, want)
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
		rows, err := newReader(strings.NewReader("name,categoryId\n"+test.content), CSV)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for {
			found, err := rows.next()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			text := found.Pet.Name
			if found.Err != nil {
				text = "refused"
			}
			got = append(got, fmt.Sprint(found.Line, " ", text))
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got\n%q, want\n%q", name, got, test.want)
		}
	}
}

// TestLongRow: the import ends at a row that is too long to keep in memory.
func TestLongRow(t *testing.T) {
	for _, content := range []string{
		"name,categoryId\n" + strings.Repeat("x", 2*maxRow) + ",7\n",
		"name,categoryId\n\"Rex,7\n" + strings.Repeat("Tom,3\n", maxRow/3),
	} {
		if pets, _, err := Read(strings.NewReader(content), CSV); !errors.Is(err, errRowTooLong) {
			t.Errorf("%.30q: got %+v, %v, want an error", content, pets, err)
		}
	}
	long := `{"name":"Rex","categoryId":7}` + "\n" + strings.Repeat(" ", maxRow)
	if pets, _, err := Read(strings.NewReader(long), JSONL); err == nil || !strings.Contains(err.Error(), "line 2") {
		t.Errorf("got %+v, %v, want an error about line 2", pets, err)
	}
	if _, _, err := Read(strings.NewReader(strings.Repeat("x", maxRow-1)), CSV); err == nil || len(err.Error()) > 1000 {
		t.Errorf("got an error of %d bytes, want a short one", len(err.Error()))
	}
}

// endless is a file of mistakes without an end.
type endless struct{ started bool }

func (e *endless) Read(p []byte) (int, error) {
	text := ",x\n"
	if !e.started {
		e.started, text = true, "name,categoryId\n"
	}
	return copy(p, text), nil
}

// TestRowsStop: no more of a file is read than its rows are asked for.
func TestRowsStop(t *testing.T) {
	rows := 0
	for row, err := range Rows(new(endless), CSV) {
		if rows++; err != nil || row.Err == nil {
			t.Fatalf("got %+v, %v, want a mistake", row, err)
		}
		if rows == 100 {
			return
		}
	}
}

// TestNoTemporaryNames: errors name the requested file, not the temporary file next to
// it.
func TestNoTemporaryNames(t *testing.T) {
	missing, lost := filepath.Join(t.TempDir(), "missing"), t.TempDir()
	for name, err := range map[string]error{
		filepath.Join(missing, "pets.csv"): Export(filepath.Join(missing, "pets.csv"), nil, CSV, func(func(animalstore.Pet, error) bool) {}, func() {}),
		filepath.Join(lost, "pets.csv"):    Export(filepath.Join(lost, "pets.csv"), nil, CSV, func(func(animalstore.Pet, error) bool) { os.RemoveAll(lost) }, func() {}),
	} {
		var file Error
		if !errors.As(err, &file) || !strings.Contains(err.Error(), name+":") {
			t.Errorf("got %v, want an error about %s", err, name)
		}
	}
}
