package console_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"animalstore"
)

// TestCategoriesByName: forms and filters take a category by its name, by its label, or by
// a label from before it was renamed.
func TestCategoriesByName(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(everything)
	s.category(3, "Dogs")
	s.category(4, "Cats")
	s.category(5, "")
	s.category(6, "birds")
	s.category(7, "Birds ")
	s.category(8, "9")
	s.category(9, "Dogs (3)")
	s.category(-1, "שפנים\nwith a line break")
	s.category(12, strings.Repeat("long", 256))
	for id := range int64(100) { // more than one call lists
		s.category(1000+id, fmt.Sprint("kind ", id))
	}
	for text, want := range map[string]int64{
		"Dogs": 3, " dOGS ": 3, "Hounds (3)": 3, "(4)": 4, "no name (5)": 5, "5": 5, "Birds (7)": 7, "9": 8, "Dogs (3) (9)": 9,
		"שפנים\nwith a line break (-1)": -1, strings.Repeat("long", 256): 12, "longlong… (12)": 12, "kind 99": 1099,
	} {
		pet, _, err := s.DB.CreatePet(t.Context(), animalstore.NewPet{Name: fmt.Sprint("of ", want), CategoryID: want}, nil)
		if err != nil {
			t.Fatal(err)
		}
		b.get("/console/pets?category="+url.QueryEscape(text)).want(t, "filtered by "+text, http.StatusOK, fmt.Sprintf("<bdi>of %d</bdi>", want))
		// The form shows the category in a way that changes nothing when it is sent.
		path := fmt.Sprint("/console/pets/", pet.ID)
		b.post(path, b.get(path+"/edit").form(t, path, "name", "Max")).wantMoved(t, text, path).wantDone(t, "saved")
		if pet, err = s.DB.Pet(t.Context(), pet.ID); err != nil || pet.CategoryID != want || pet.Name != "Max" {
			t.Errorf("%q, changed: got %+v (%v), want the category %d", text, pet, err, want)
		}
	}
	added := b.post("/console/pets", b.get("/console/pets/new").form(t, "/console/pets", "name", "Rex", "category", " dOGS "))
	b.get(added.location()).want(t, "added by a name", http.StatusOK, "<bdi>Dogs</bdi>")
	for _, text := range []string{"Birds", "Fish", "99", "Dogs (99)", "  "} {
		form := b.get("/console/pets/new").form(t, "/console/pets", "name", "Rex", "category", text)
		b.post("/console/pets", form).want(t, text, http.StatusBadRequest, `id="wrong"`, `name="category" value="`+text+`" required`)
		if text = strings.TrimSpace(text); text != "" {
			b.get("/console/pets?category="+url.QueryEscape(text)).want(t, "filtered by "+text, http.StatusBadRequest, `id="wrong"`)
		}
	}
	b.get("/console/pets/new").want(t, "the list", http.StatusOK, `<option value="Dogs (3)">`, `<option value="no name (5)">`, `<option value="`+strings.Repeat("long", 14)+`lon… (12)">`)
	b.get("/console/pets/new?category=Dogs+%283%29").want(t, "from the category's page", http.StatusOK, `name="category" value="Dogs (3)"`)
	b.get("/console/categories/5").want(t, "a category", http.StatusOK, `href="/console/pets?category=no&#43;name&#43;%285%29"`, `href="/console/pets/new?category=no&#43;name&#43;%285%29"`)
}

// TestNewCategory: a name that no category has is added with its first pet, but only if
// that was ticked, and only once.
func TestNewCategory(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(everything)
	s.category(1, "Dogs")
	s.category(3, "Cats")
	before := s.content()
	form := b.get("/console/pets/new").form(t, "/console/pets", "name", "Koi", "category", " Fish & <Co> ")
	asked := b.post("/console/pets", form)
	asked.want(t, "a new name", http.StatusBadRequest, `<input type="checkbox" name="newCategory" value="Fish &amp; &lt;Co&gt;">`)
	form.Set("newCategory", "Fsh")
	b.post("/console/pets", form).want(t, "ticked, then typed another", http.StatusBadRequest, "newCategory")
	form.Set("newCategory", "Fish & <Co>")
	form.Set("name", " ")
	b.post("/console/pets", form).want(t, "with a mistake", http.StatusBadRequest, `id="wrong"`)
	if after := s.content(); after != before {
		t.Errorf("the store changed from\n%s\nto\n%s\nwithout consent", before, after)
	}
	form = asked.form(t, "/console/pets", "newCategory", "Fish & <Co>")
	var wg sync.WaitGroup
	for range 4 {
		one := *b
		wg.Go(func() { one.post("/console/pets", form).wantMoved(t, "ticked", "/console/pets/1") })
	}
	wg.Wait()
	if got, err := s.DB.Category(t.Context(), 2); err != nil || got.Name != "Fish & <Co>" {
		t.Errorf("got the category %+v (%v), want the new name at the first free id", got, err)
	}
	b.get("/console/pets/1").want(t, "the pet", http.StatusOK, "<bdi>Fish &amp; &lt;Co&gt;</bdi>")
	// The form of a pet that exists does the same.
	change := b.post("/console/pets/1", b.get("/console/pets/1/edit").form(t, "/console/pets/1", "category", "Reptiles"))
	change.want(t, "change to a new name", http.StatusBadRequest, "newCategory")
	b.post("/console/pets/1", change.form(t, "/console/pets/1", "newCategory", "Reptiles")).wantMoved(t, "ticked", "/console/pets/1").wantDone(t, "saved")
	b.get("/console/pets/1/edit").want(t, "the pet", http.StatusOK, `value="Reptiles (4)"`)

	// And so does the page of the categories, without asking for a number.
	add := b.get("/console/categories").form(t, "/console/categories", "name", "Birds")
	b.post("/console/categories", add).wantMoved(t, "add", "/console/categories").wantDone(t, "added")
	b.post("/console/categories", add).wantMoved(t, "again", "/console/categories").wantDone(t, "unchanged")
	b.get("/console/categories/5").want(t, "the category", http.StatusOK, "<bdi>Birds</bdi>")
	b.post("/console/categories", b.get("/console/categories").form(t, "/console/categories", "name", " ")).want(t, "no name", http.StatusBadRequest, `id="wrong"`)
}

// TestWriteOnly: a key that may not read names enters a category's number.
func TestWriteOnly(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(animalstore.Write)
	s.category(3, "Dogs")
	p := b.get("/console/pets/new")
	if p.want(t, "the form", http.StatusOK); strings.Contains(p.body, "Dogs") {
		t.Errorf("a key that may not read sees the categories:\n%s", p.body)
	}
	b.post("/console/pets", p.form(t, "/console/pets", "name", "Rex", "category", "Dogs")).want(t, "a name", http.StatusBadRequest)
	b.post("/console/pets", p.form(t, "/console/pets", "name", "Rex", "category", "3")).wantMoved(t, "a number", "/console/pets/new")
}

// TestCategoryThatExists: the id of another category is refused, also if the key may not
// read what has it.
func TestCategoryThatExists(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.category(7, "Dogs")
	form := url.Values{"id": {"7"}, "name": {"Cats"}}
	for _, permissions := range []animalstore.Permissions{everything, animalstore.Write} {
		s.signedIn(permissions).post("/console/categories", form).
			want(t, permissions.String(), http.StatusBadRequest, "There is a category with the id 7 already.")
	}
}
