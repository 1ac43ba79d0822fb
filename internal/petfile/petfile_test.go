package petfile_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"animalstore"
	"animalstore/client/clienttest"
	"animalstore/internal/petfile"
)

// refusals reads a file and returns why each of its rows is refused.
func refusals(t *testing.T, text string, format petfile.Format) (messages []string) {
	t.Helper()
	_, mistakes, err := petfile.Read(strings.NewReader(text), format)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mistakes {
		messages = append(messages, m.Err.Error())
	}
	return messages
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
