package console_test

import (
	"bytes"
	"fmt"
	"html"
	"mime/multipart"
	"net/http"
	"strings"
	"testing"
	"time"

	"animalstore"
)

// importFile sends a file with the form of the page Import. done is what an earlier page
// said, if it isn't "".
func (b *browser) importFile(action, name, content, done string) shown {
	b.s.T.Helper()
	var body bytes.Buffer
	w := multipart.NewWriter(&body)
	part, _ := w.CreateFormFile("file", name) // a bytes.Buffer never fails
	part.Write([]byte(content))
	if done != "" {
		w.WriteField("done", done)
	}
	w.Close()
	return b.sendBody("/console/pets/import/"+action, w.FormDataContentType(), &body)
}

// petLines is a CSV file with this many pets.
func petLines(n int) string {
	var b strings.Builder
	b.WriteString("name,categoryId\n")
	for i := range n {
		fmt.Fprintf(&b, "Rex %d,1\n", i)
	}
	return b.String()
}

// mistakes is a CSV file with this many mistakes.
func mistakes(n int) string { return strings.ReplaceAll(petLines(n), ",1\n", ",\n") }

// count is how many pets are in the store.
func (s *site) count() (n int64) {
	s.T.Helper()
	inventory, err := s.DB.CountPets(s.T.Context(), nil)
	if err != nil {
		s.T.Fatal(err)
	}
	return inventory.Available + inventory.Pending + inventory.Sold
}

// TestImportRefused: files that can't be added, neither in a check nor at once.
func TestImportRefused(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(everything)
	for _, c := range []struct {
		name, file, content string
		status              int
		want                string
	}{
		{"no file", "", "", http.StatusBadRequest, "Choose a file"},
		{"too large", "pets.csv", petLines(1) + strings.Repeat("x", 5<<20), http.StatusRequestEntityTooLarge, "5 MiB"},
		{"too many", "pets.csv", petLines(10_001), http.StatusBadRequest, "10,000"},
		{"no pets", "pets.csv", petLines(0), http.StatusBadRequest, "no pets"},
		{"a spreadsheet", "pets.xlsx", "PK\x03\x04\x14\x00\x06\x00", http.StatusBadRequest, "CSV (UTF-8)"},
		{"Windows-1252", "pets.csv", petLines(2) + "Zo\xeb,1\nFran\xe7ois,1\n", http.StatusBadRequest, "Line 4 isn&#39;t UTF-8"},
		{"Windows-1252 after a mistake", "pets.csv", mistakes(1) + "Zo\xeb,1\n", http.StatusBadRequest, "Line 3 isn&#39;t UTF-8"},
		{"UTF-16", "pets.txt", "\xff\xfen\x00a\x00m\x00e\x00", http.StatusBadRequest, "Unicode Text"},
		{"many mistakes", "pets.csv", mistakes(1_000) + strings.Repeat("x", 2<<20), http.StatusBadRequest, "<td>101</td>"},
		{"mistakes", "pets.jsonl", `{"name": "Rex", "categoryId": 1}` + "\n{}\n" + `{"name": " ", "categoryId": 1}`, http.StatusBadRequest, "2 mistakes"},
	} {
		for _, action := range []string{"check", "add"} {
			b.importFile(action, c.file, c.content, "").want(t, c.name+": "+action, c.status, c.want)
		}
	}
	if p := b.importFile("check", "pets.csv", mistakes(101), ""); strings.Contains(p.body, "<td>102</td>") {
		t.Errorf("got more than 100 mistakes\n%s", p.body)
	}
	reader := s.signedIn(animalstore.Read)
	reader.importFile("add", "pets.csv", petLines(1), "").want(t, "without permission", http.StatusForbidden)
	if n := s.count(); n != 0 {
		t.Errorf("got %d pets, want none", n)
	}
	writer := s.signedIn(animalstore.Write)
	writer.importFile("check", "pets.csv", petLines(2), "").want(t, "without names of categories", http.StatusOK, "2 pets")
}

// TestImportStops: a limit ends an import. Adding the file again continues it, also with a
// key whose limit is less than the requests for the whole file.
func TestImportStops(t *testing.T) {
	t.Parallel()
	s := start(t)
	secret, _ := s.Key("few", animalstore.Write, 4) // one for the file, three for its pets
	b := s.browser()
	b.signIn(secret)
	s.Advance(time.Hour)
	file, done := petLines(750), ""
	for i, added := range []int64{300, 600, 750} {
		p := b.importFile("add", "pets.csv", file, done)
		if n := s.count(); n != added {
			t.Fatalf("import %d: got %d pets, want %d\n%s", i, n, added, p.body)
		}
		if added == 750 {
			p.want(t, "the last", http.StatusOK, "Added 150 pets", "600 pets of this file")
			break
		}
		p.want(t, "stopped", http.StatusTooManyRequests, fmt.Sprintf("%d of 750 pets", added), `class="countdown"`)
		done = html.UnescapeString(regexpFind(t, p.body, `name="done" value="([^"]*)"`))
		s.Advance(time.Hour)
	}
	s.Advance(time.Hour)
	b.importFile("add", "pets.csv", file, "").want(t, "from the beginning", http.StatusTooManyRequests, "300 of 750 pets")
	if n := s.count(); n != 750 {
		t.Errorf("got %d pets, want each line once", n)
	}
}

// TestExport: an export has all pages of the list, with its filters.
func TestExport(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(everything)
	b.importFile("add", "pets.csv", petLines(150), "").want(t, "import", http.StatusOK)
	b.importFile("add", "cats.csv", "name,categoryId,status\n\"=1+1, \"\"Zoë\"\"\",2,sold\nTom,2,pending\n", "").want(t, "import", http.StatusOK)
	p := b.get("/console/pets/export")
	p.want(t, "all", http.StatusOK)
	if lines := strings.Count(p.body, "\n"); lines != 153 {
		t.Errorf("got %d lines, want 153", lines)
	}
	p = b.get("/console/pets/export?status=sold&category=2")
	p.want(t, "sold cats", http.StatusOK, "Zoë")
	if lines := strings.Count(p.body, "\n"); lines != 2 || !strings.HasPrefix(p.header.Get("Content-Disposition"), "attachment") {
		t.Errorf("got %q of %q, want one pet in a file", p.body, p.header)
	}
	b.importFile("add", "pets.csv", p.body, "").want(t, "import of the export", http.StatusOK, "Added one pet")
	b.get("/console/pets/export?category=none").want(t, "a filter that isn't valid", http.StatusBadRequest)
}
