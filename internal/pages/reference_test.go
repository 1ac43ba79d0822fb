package pages

import (
	"encoding/json"
	"fmt"
	"html"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"animalstore"
	"animalstore/openapi"
)

// TestTasks: what people want leads to the operation.
func TestTasks(t *testing.T) {
	p := newPages(animalstore.Production, "")
	operation := regexp.MustCompile(`<a href="/docs#([A-Za-z]+)">`)
	for search, want := range map[string]string{
		"cancel order": "updateOrder", "How do I cancel an order": "updateOrder", "cancelled orders": "updateOrder", "how many pets": "getInventory",
		"upload a picture": "addPhoto", "buy": "placeOrder", "leaked": "updateKey revokeKey rotateKey", "suspend": "updateKey", "ip address": "updateKey", "batch": "createPetBatch",
		"in stock": "getInventory", "why did my request fail": "listFailures", "who changed": "listEvents", "resend": "retryDeliveries retryDelivery",
		"no such unicorn": "", "": "",
	} {
		page := body(t, fetchPage(p, "GET", "/docs/search?find="+url.QueryEscape(search), nil))
		var got []string
		for _, m := range operation.FindAllStringSubmatch(page, -1) {
			got = append(got, m[1])
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%q finds %q, want %s", search, got, want)
		}
		wantLinks(t, p, "/docs/search", page)
	}
	many := body(t, fetchPage(p, "GET", "/docs/search?find=how+many", nil))
	if !strings.Contains(many, "/docs#getInventory") {
		t.Error("how many: doesn't find the inventory")
	}
	evil := body(t, fetchPage(p, "GET", "/docs/search?find=%3Cb%3E%22%FF", nil))
	if strings.Contains(evil, "<b>\"") {
		t.Error("the search is markup in its page")
	}
	var names []string
	for _, o := range readReference(t) {
		if names = append(names, o.ID); tasks[o.ID] == "" {
			t.Errorf("%s has no words that people search for", o.ID)
		}
	}
	for name := range tasks {
		if !slices.Contains(names, name) {
			t.Errorf("%s isn't an operation", name)
		}
	}
}

func readDocument(t *testing.T) (d document) {
	t.Helper()
	if err := json.Unmarshal(openapi.JSON, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

func readReference(t *testing.T) []operationView {
	t.Helper()
	d := readDocument(t)
	var all []operationView
	for _, g := range d.groups() {
		all = append(all, g.Operations...)
	}
	if len(all) < 22 {
		t.Fatalf("got %d operations, want all", len(all))
	}
	return all
}

// TestReference: each operation is on the page with its parameters, fields, responses
// and snippets.
func TestReference(t *testing.T) {
	page := html.UnescapeString(body(t, fetchPage(newPages(animalstore.Production, ""), "GET", "/docs", nil)))
	for _, o := range readReference(t) {
		if !strings.Contains(page, `id="`+o.ID+`"`) || o.Summary == "" || o.About == "" {
			t.Errorf("%s isn't on the page, or has no text", o.ID)
		}
		for _, p := range o.Parameters {
			if p.Type == "" || p.About == "" || p.Required && p.Hint == "" {
				t.Errorf("%s: got the parameter %+v, want its type, text and example", o.ID, p)
			}
		}
		if o.Body != nil && o.Body.File == "" && (len(o.Body.Fields) == 0 || o.Body.Example == "") {
			t.Errorf("%s: got the body %+v, want its fields and an example", o.ID, o.Body)
		}
		for _, r := range o.Responses {
			if r.About == "" || r.Status[0] >= '4' && len(r.Examples) == 0 {
				t.Errorf("%s: got the response %+v, want its text and an example", o.ID, r)
			}
			for _, f := range r.Fields {
				if f.Type == "" {
					t.Errorf("%s: %s: got the field %+v, want its type", o.ID, r.Status, f)
				}
			}
		}
		for _, s := range o.Snippets {
			if s.Code == "" || !strings.Contains(page, s.Code) {
				t.Errorf("%s: got no snippet for %s. A Go snippet is a function %[1]s in examples/examples_test.go", o.ID, s.Lang)
			}
			if strings.Contains(s.Code, "{"+"petId") || strings.Contains(s.Code, "return nil") {
				t.Errorf("%s: got the snippet\n%s", o.ID, s.Code)
			}
		}
	}
}

// TestEventCatalogue: each type of event is on the page, with when it is sent, its fields
// and an example.
func TestEventCatalogue(t *testing.T) {
	page := html.UnescapeString(body(t, fetchPage(newPages(animalstore.Production, ""), "GET", "/docs", nil)))
	d := readDocument(t)
	var types []animalstore.EventType
	for _, e := range d.events() {
		types = append(types, animalstore.EventType(e.Type))
		if !strings.Contains(page, `id="`+e.Type+`"`) || !strings.Contains(page, e.Example) || e.Summary == "" || e.About == "" || len(e.Fields) < 3 {
			t.Errorf("%s isn't on the page, or lacks something: %+v", e.Type, e)
		}
	}
	want := append(slices.Clone(animalstore.EventTypes), animalstore.WebhookPing)
	slices.Sort(types)
	slices.Sort(want)
	if !slices.Equal(types, want) {
		t.Errorf("got the types %q, want %q", types, want)
	}
}

// TestEventGuide: the guide lists each type of event with when it is sent, as the document
// says it.
func TestEventGuide(t *testing.T) {
	guide, err := os.ReadFile("../../docs/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range readDocument(t).Webhooks {
		data, _, _ := strings.Cut(w.Name, ".")
		if w.Name == string(animalstore.WebhookPing) {
			data = "none"
		}
		when := strings.Join(strings.Fields(w.Value.Post.Description), " ")
		if row := fmt.Sprintf("| `%s` | %s | %s |\n", w.Name, data, when); !strings.Contains(string(guide), row) {
			t.Errorf("docs/webhooks.md lacks %s", row)
		}
	}
}

// TestSnippets shows what the snippets of a request with a body look like.
func TestSnippets(t *testing.T) {
	for _, o := range readReference(t) {
		if o.ID != "createPet" {
			continue
		}
		for _, s := range o.Snippets {
			want := map[string]string{
				"curl": `curl "http://127.0.0.1:8080/v1/pets" \
  -H "Authorization: Bearer $ANIMALSTORE_API_KEY" \
  -H "Content-Type: application/json" \
  -d '{"name":"Rex","categoryId":7}'`,
				"go": `c, err := client.New("http://127.0.0.1:8080", os.Getenv("ANIMALSTORE_API_KEY"))
if err != nil {
	return err
}
pet, err := c.CreatePet(ctx, animalstore.NewPet{Name: "Rex", CategoryID: 7})
if err != nil {
	return err
}
fmt.Println(pet.ID, pet.Status)`,
				"ts": `import { Client } from "animalstore";

const store = new Client("http://127.0.0.1:8080", process.env.ANIMALSTORE_API_KEY);
const pet = await store.createPet({ name: "Rex", categoryId: 7 });
console.log(pet.id, pet.status);`,
				"js": "const response = await fetch(\"http://127.0.0.1:8080/v1/pets\", {\n  method: \"POST\",\n  headers: {\n" +
					"    Authorization: `Bearer ${process.env.ANIMALSTORE_API_KEY}`,\n    \"Content-Type\": \"application/json\",\n  },\n" +
					"  body: JSON.stringify({\"name\":\"Rex\",\"categoryId\":7}),\n});\n" +
					"if (!response.ok) throw new Error((await response.json()).message);\nconsole.log(await response.json());",
				"python": `import os

from animalstore import Client, NewPet

store = Client("http://127.0.0.1:8080", os.environ["ANIMALSTORE_API_KEY"])
pet = store.create_pet(NewPet(name="Rex", category_id=7))
print(pet.id, pet.status)`,
			}[s.Lang]
			if s.Code != want {
				t.Errorf("%s: got\n%s\nwant\n%s", s.Lang, s.Code, want)
			}
		}
	}
}

// TestReferenceIsSafe: no id is filled in, and requests that delete or revoke something
// ask for confirmation.
func TestReferenceIsSafe(t *testing.T) {
	page := body(t, fetchPage(newPages(animalstore.Production, ""), "GET", "/docs", nil))
	var asks []string
	for _, o := range readReference(t) {
		for _, p := range o.Parameters {
			input := regexp.MustCompile(`<input id="` + o.ID + `-path-` + p.Name + `"[^>]*>`).FindString(page)
			if p.In == "path" && (input == "" || strings.Contains(input, " value=") || !strings.Contains(input, " required")) {
				t.Errorf("%s: the input of %s is %q, want it required and empty", o.ID, p.Name, input)
			}
		}
		if o.Asks() {
			asks = append(asks, o.ID)
		}
	}
	slices.Sort(asks)
	if want := []string{"deletePet", "deletePhoto", "deleteWebhook", "revokeKey", "rotateKey", "rotateWebhook"}; !slices.Equal(asks, want) {
		t.Errorf("these operations ask first: %q, want %q", asks, want)
	}
	if got := strings.Count(page, " data-asks="); got != len(asks) {
		t.Errorf("%d forms ask first, want %d", got, len(asks))
	}
}
