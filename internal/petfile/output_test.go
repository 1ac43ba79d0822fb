package petfile

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"animalstore"
)

// imported gives each pet the id of its place in the file, and writes the output.
func imported(o *Output) error {
	given, mistakes, err := o.Read()
	if err != nil || len(mistakes) > 0 {
		return errors.Join(err, fmt.Errorf("%d mistakes: %v", len(mistakes), mistakes))
	}
	pets := make([]animalstore.Pet, len(given))
	for i := range pets {
		pets[i].ID = int64(i + 1)
	}
	return o.Write(pets)
}

// TestOutput: everything in the input is kept as it is, and each row gets its id.
func TestOutput(t *testing.T) {
	long := strings.Repeat("x", 100<<10) // more than is read at once
	many := strings.Builder{}
	wantMany := strings.Builder{}
	many.WriteString("sku,name,categoryId\n")
	wantMany.WriteString("sku,name,categoryId,id\n")
	for i := range 5000 {
		fmt.Fprintf(&many, "%d,\"Rex \"\"%d\"\"\",7\n", i, i)
		fmt.Fprintf(&wantMany, "%d,\"Rex \"\"%d\"\"\",7,%d\n", i, i, i+1)
	}
	for _, test := range []struct{ name, in, want string }{
		{"quotes.csv", "\"sku\", name ,categoryId\nA, \x27=Rex,7\n\"\",\"Mia\n,\",\" 8\"\n", "\"sku\", name ,categoryId,id\nA, \x27=Rex,7,1\n\"\",\"Mia\n,\",\" 8\",2\n"},
		{"windows.csv", "\ufeffsku;name;categoryId\r\n\r\n1;\"Mia\r\n\";7\r\n\r\n2;Rex;7", "\ufeffsku;name;categoryId;id\r\n1;\"Mia\r\n\";7;1\r\n2;Rex;7;2\n"},
		{"long.csv", "sku,name,categoryId\n" + long + ",Rex,7\n" + long + ",Mia,7\n", "sku,name,categoryId,id\n" + long + ",Rex,7,1\n" + long + ",Mia,7,2\n"},
		{"many.csv", many.String(), wantMany.String()},
		{"lines.jsonl", "{\"name\":\"Rex\",\"categoryId\":7,\"a\":{\"id\":1}} \r\n\n{\"categoryId\":7.0 , \"name\":\"}\" }", "{\"name\":\"Rex\",\"categoryId\":7,\"a\":{\"id\":1},\"id\":1}\n{\"categoryId\":7.0 , \"name\":\"}\",\"id\":2}\n"},
		{"detected", "{\"name\":\"Rex\",\"categoryId\":7}", "{\"name\":\"Rex\",\"categoryId\":7,\"id\":1}\n"},
	} {
		dir := t.TempDir()
		t.Setenv("TMPDIR", t.TempDir())
		input, output := filepath.Join(dir, test.name), filepath.Join(dir, "ids")
		if err := os.WriteFile(input, []byte(test.in), 0o600); err != nil {
			t.Fatal(err)
		}
		o, err := CreateOutput(output, nil, input, nil, "")
		if err != nil {
			t.Fatal(err)
		}
		// What happens to the input later doesn't matter.
		if err := os.Remove(input); err != nil {
			t.Fatal(err)
		}
		err = errors.Join(imported(o), o.Close())
		got, readErr := os.ReadFile(output)
		if err = errors.Join(err, readErr); err != nil || string(got) != test.want {
			t.Errorf("%s: got %.300q, %v, want %.300q", test.name, got, err, test.want)
		}
		checkEmpty(t, os.TempDir())
	}
}

// TestOutputRefused: input that has ids already, and another format than the input's.
func TestOutputRefused(t *testing.T) {
	for _, test := range []struct{ in, output, want string }{
		{"ID,name,categoryId\n,Rex,7\n", "ids.csv", `column "id"`},
		{"{\"name\":\"Rex\",\"categoryId\":7}\n{\"id\":null,\"name\":\"Rex\",\"categoryId\":7}\n", "ids.jsonl", `1 mistakes: [{2 it has a field "id"`},
		{"name,categoryId\nRex,7\n", "ids.ndjson", "format"},
		{"{\"name\":\"Rex\",\"categoryId\":7}\n", "ids.CSV", "format"},
	} {
		dir := t.TempDir()
		t.Setenv("TMPDIR", t.TempDir())
		o, err := CreateOutput(filepath.Join(dir, test.output), nil, "-", strings.NewReader(test.in), "")
		if err != nil {
			t.Fatal(err)
		}
		if err := imported(o); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%q: got %v, want %q in it", test.in, err, test.want)
		}
		if err := o.Close(); err != nil {
			t.Error(err)
		}
		checkEmpty(t, dir)
		checkEmpty(t, os.TempDir())
	}
}

// TestOutputFull: a file that can't be written keeps what it had, and the error names it.
func TestOutputFull(t *testing.T) {
	o, err := CreateOutput("/dev/full", nil, "-", strings.NewReader("name,categoryId\nRex,7\n"), "")
	if err != nil {
		t.Skip(err)
	}
	if err := errors.Join(imported(o)); !errors.As(err, new(Error)) || !strings.Contains(err.Error(), "/dev/full") {
		t.Errorf("got %v, want an error about /dev/full", err)
	}
	if err := o.Close(); err != nil {
		t.Error(err)
	}
}

func checkEmpty(t *testing.T, dir string) {
	t.Helper()
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("%s has %v (%v), want nothing", dir, files, err)
	}
}
