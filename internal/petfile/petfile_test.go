package petfile_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/client/clienttest"
	"animalstore/internal/petfile"
)

// refusals reads a file and returns why each of its rows is refused.
func refusals(t *testing.T, text string, format petfile.Format) (messages []string) {
	t.Helper()
	rows, err := petfile.NewReader(strings.NewReader(text), format)
	if err != nil {
		t.Fatal(err)
	}
	for {
		row, err := rows.Next()
		if errors.Is(err, io.EOF) {
			return messages
		}
		if err != nil {
			t.Fatal(err)
		}
		messages = append(messages, fmt.Sprint(row.Err))
	}
}

// apiMessage returns the API's message for a new pet that it refuses.
func apiMessage(t *testing.T, s *clienttest.Server, body string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL+"/v1/pets", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+s.Key)
	r.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var got struct{ Message string }
	if err := json.NewDecoder(response.Body).Decode(&got); err != nil || response.StatusCode != http.StatusBadRequest {
		t.Fatalf("%s: got status %d (%v), want 400", body, response.StatusCode, err)
	}
	return got.Message
}

// TestSameMessagesAsTheAPI: the import refuses a pet with the same message as the API.
func TestSameMessagesAsTheAPI(t *testing.T) {
	server := clienttest.New(t)
	long := strings.Repeat("x", animalstore.MaxNameLength+1)
	for _, line := range []string{
		`not json`, `{} {}`, `{"name":"x","name":"y","categoryId":1}`, `{"name":"x"}`,
		`{"name":"  ","categoryId":1}`, `{"name":"x","categoryId":1.5}`, `{"name":"x","categoryId":1,"status":"asleep"}`,
	} {
		got := refusals(t, line+"\n", petfile.JSONL)
		if want := []string{apiMessage(t, server, line)}; !slices.Equal(got, want) {
			t.Errorf("%.80s: got %q, want %q, the API's message", line, got, want)
		}
	}
	for csv, body := range map[string]string{
		`,1,`:                    `{"name":"","categoryId":1}`,
		long + `,1,`:             `{"name":"` + long + `","categoryId":1}`,
		`x,many,`:                `{"name":"x","categoryId":"many"}`,
		`x,,`:                    `{"name":"x","categoryId":""}`,
		`x,1.5,`:                 `{"name":"x","categoryId":1.5}`,
		`x,9223372036854775808,`: `{"name":"x","categoryId":9223372036854775808}`,
		`x,1,asleep`:             `{"name":"x","categoryId":1,"status":"asleep"}`,
	} {
		got := refusals(t, "name,categoryId,status\n"+csv+"\n", petfile.CSV)
		if want := []string{apiMessage(t, server, body)}; !slices.Equal(got, want) {
			t.Errorf("%.80s: got %q, want %q, the API's message", csv, got, want)
		}
	}
}

// recorder is the observer and the server of an import.
type recorder struct {
	resumed   int64
	restarted bool
	sent      []string
	limit     int // of pets before the server is gone; 0: none
}

func (r *recorder) Resumed(rows int64) { r.resumed = rows }
func (r *recorder) Restarted()         { r.restarted = true }
func (r *recorder) Done(int64, error)  {}

var errGone = errors.New("the server is gone")

func (r *recorder) add(_ context.Context, pet animalstore.NewPet, _ string) (bool, error) {
	if r.limit > 0 && len(r.sent) == r.limit {
		return false, errGone
	}
	r.sent = append(r.sent, pet.Name)
	return false, nil
}

const maxAge = 23 * time.Hour

func importFile(t *testing.T, name string, r *recorder) (*petfile.Result, error) {
	t.Helper()
	file, err := petfile.Open(name, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	journal := petfile.NewJournal(name)
	journal.Server, journal.Credential, journal.MaxAge = "http://pets.example/v1", "secret", maxAge
	run := petfile.Import{File: file, Workers: 1, Add: r.add, Observer: r, Journal: journal}
	return run.Run(t.Context())
}

// interrupted returns a file whose import was interrupted after two of three rows.
func interrupted(t *testing.T) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "pets.csv")
	if err := os.WriteFile(name, []byte("name,categoryId\nA,1\nB,1\nC,1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	r := recorder{limit: 2}
	if result, err := importFile(t, name, &r); !errors.Is(err, errGone) || result.Complete || result.Added != 2 {
		t.Fatalf("got %+v (%v), want 2 added before %v", result, err, errGone)
	}
	return name
}

func TestImportContinues(t *testing.T) {
	name := interrupted(t)
	var r recorder
	result, err := importFile(t, name, &r)
	if err != nil || !result.Complete || result.Added != 3 || r.resumed != 2 || !slices.Equal(r.sent, []string{"C"}) {
		t.Errorf("got %+v (%v) after %+v, want C sent and 3 added in all", result, err, r)
	}
	if _, err := os.Stat(name + ".progress"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v, want the journal removed", err)
	}
}

func TestImportOfChangedFile(t *testing.T) {
	name := interrupted(t)
	if err := os.WriteFile(name, []byte("name,categoryId\nX,1\nB,1\nC,1\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	var r recorder
	if _, err := importFile(t, name, &r); err != nil || !r.restarted || !slices.Equal(r.sent, []string{"X", "B", "C"}) {
		t.Errorf("got %+v (%v), want everything sent again", r, err)
	}
}
