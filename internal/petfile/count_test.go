package petfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"animalstore"
)

// TestCount: the number of pets is known before the first of them is read, and isn't
// the number of lines.
func TestCount(t *testing.T) {
	long := strings.Repeat("x", 600<<10)
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
		"long.csv":        {"name,categoryId\n" + long + ",7\n\"" + long + "\n\",2\n", 2},
		"two.jsonl":       {"{\"name\":\"Rex\"}\n\n{\"name\":\"\\\"\"}", 2},
		"json-in-a-file":  {"\ufeff{\"name\":\"Rex\"}\n{\"name\":\"Mia\"}\n", 2},
		"csv-in-a-file":   {"\ufeffname,categoryId\nRex,7\n", 1},
		"one-broken.json": {"{\"name\":\"Rex\n{}\n", 2},
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, []byte(test.content), 0o666); err != nil {
			t.Fatal(err)
		}
		file, err := os.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		defer file.Close()
		if got, err := countPets(file, FormatOf(name)); err != nil || got != test.want {
			t.Errorf("%s: got %d pets (%v), want %d", name, got, err, test.want)
		}
	}
}

// TestNoTemporaryNames: an error names the file that was asked for, and not the
// temporary one next to it.
func TestNoTemporaryNames(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "missing")
	err := Export(filepath.Join(dir, "pets.csv"), nil, CSV, func(func(animalstore.Pet, error) bool) {}, func() {})
	if want := "write " + filepath.Join(dir, "pets.csv") + ": no such file or directory"; err == nil || err.Error() != want {
		t.Errorf("export: got %v, want %s", err, want)
	}
	err = NewJournal(filepath.Join(dir, "pets.csv")).save()
	if want := "write " + filepath.Join(dir, "pets.csv.progress") + ": no such file or directory"; err == nil || err.Error() != want {
		t.Errorf("journal: got %v, want %s", err, want)
	}
	// A file that disappears during the export.
	dir = t.TempDir()
	err = Export(filepath.Join(dir, "pets.csv"), nil, CSV, func(func(animalstore.Pet, error) bool) { os.RemoveAll(dir) }, func() {})
	if want := "write " + filepath.Join(dir, "pets.csv") + ": no such file or directory"; err == nil || err.Error() != want {
		t.Errorf("export: got %v, want %s", err, want)
	}
	var file Error
	if !errors.As(err, &file) {
		t.Errorf("got %T, want an error about a file", err)
	}
}
