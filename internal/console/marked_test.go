package console_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"testing"

	"animalstore"
)

var markTag = regexp.MustCompile(`name="mark" value="([^"]*)" form=`)

// marks are the values of all checkboxes of a page.
func (p shown) marks() (marks []string) {
	for _, m := range markTag.FindAllStringSubmatch(p.body, -1) {
		marks = append(marks, html.UnescapeString(m[1]))
	}
	return marks
}

// TestMarkedPets: a question comes first, then each pet is changed unless someone else has
// changed it. The same form again changes nothing and reports the same.
func TestMarkedPets(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(everything)
	for range 4 {
		s.Pet("Rex")
	}
	list := b.get("/console/pets?rows=50")
	form := url.Values{"mark": list.marks(), "from": {"/console/pets?rows=50"}}
	for _, c := range []struct {
		change string
		marks  []string
		status int
	}{{"sold", nil, http.StatusBadRequest}, {"sold", []string{"x"}, http.StatusBadRequest}, {"given away", list.marks(), http.StatusBadRequest}, {"sold", list.marks(), http.StatusOK}} {
		b.post("/console/pets/marked", url.Values{"mark": c.marks, "change": {c.change}}).want(t, c.change, c.status)
	}
	b.get("/console/pets/marked").wantMoved(t, "reload", "/console/pets")
	s.signedIn(animalstore.Read).post("/console/pets/marked/change", form).want(t, "without permission", http.StatusForbidden)

	other := s.signedIn(everything)
	other.post("/console/pets/4", other.get("/console/pets/4/edit").form(t, "/console/pets/4", "name", "Max"))
	other.post("/console/pets/3/remove", other.get("/console/pets/3").form(t, "/console/pets/3/remove"))
	form.Set("change", "sold")
	for range 2 {
		p := b.post("/console/pets/marked/change", form)
		p.want(t, "changed", http.StatusConflict, "2 pets changed", "2 pets not changed", "<bdi>Rex</bdi>", "Someone changed it")
	}
	form["mark"] = b.get("/console/pets").marks()
	form.Set("change", "pending")
	b.post("/console/pets/marked/change", form).want(t, "against the rules", http.StatusConflict, "One pet changed", "2 pets not changed")

	form["mark"] = b.get("/console/pets").marks()
	form.Set("change", "category")
	form.Set("category", "Dogs")
	b.post("/console/pets/marked/change", form).want(t, "a new category", http.StatusBadRequest, `name="newCategory"`)
	form.Set("newCategory", "Dogs")
	b.post("/console/pets/marked/change", form).wantMoved(t, "category", "/console/pets?rows=50").wantDone(t, "saved")
	form["mark"] = b.get("/console/pets").marks()
	form.Set("change", "remove")
	for range 2 {
		b.post("/console/pets/marked/change", form).wantMoved(t, "remove", "/console/pets?rows=50").wantDone(t, "removed")
	}
	if n := s.count(); n != 0 {
		t.Errorf("got %d pets, want none", n)
	}
}

// TestMarkedPetsTwice: a form that is sent twice takes one request more than its rows.
func TestMarkedPetsTwice(t *testing.T) {
	t.Parallel()
	s := start(t)
	for range 5 {
		s.Pet("Rex")
	}
	form := url.Values{"mark": s.signedIn(everything).get("/console/pets").marks(), "change": {"sold"}}
	secret, _ := s.Key("few", animalstore.Read|animalstore.Write, 1+5+5+1)
	b := s.browser()
	b.signIn(secret) // the first request
	for range 2 {
		b.post("/console/pets/marked/change", form).wantMoved(t, "sold", "/console").wantDone(t, "saved")
	}
}

// TestMarkedPetsStop: over the limit, the page offers to change the others later.
func TestMarkedPetsStop(t *testing.T) {
	t.Parallel()
	s := start(t)
	for range 5 {
		s.Pet("Rex")
	}
	form := url.Values{"mark": s.signedIn(everything).get("/console/pets").marks(), "change": {"sold"}}
	secret, _ := s.Key("few", animalstore.Read|animalstore.Write, 3)
	b := s.browser()
	b.signIn(secret) // the first request
	p := b.post("/console/pets/marked/change", form)
	p.want(t, "stopped", http.StatusTooManyRequests, "2 pets changed", "3 pets weren’t tried", `class="countdown"`)
	if got := p.form(t, "/console/pets/marked/change")["mark"]; len(got) != 3 {
		t.Errorf("got %q, want the three others", got)
	}
}
