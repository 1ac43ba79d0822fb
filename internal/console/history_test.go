package console_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"animalstore"
)

// TestHistory: the page of a pet shows what happened to it, its photos and its orders, with
// what each change changed and who made it. A page of it is four calls.
func TestHistory(t *testing.T) {
	t.Parallel()
	s := start(t)
	secret, _ := s.Key("Ada", everything, 1<<30)
	b := s.browser()
	b.signIn(secret)
	s.category(1, "Dogs")
	s.category(2, "Cats")
	pet := s.Pet("Bello")
	path := fmt.Sprint("/console/pets/", pet.ID)
	b.post(path, b.get(path+"/edit").form(t, path, "name", "Bello von Testhund", "category", "Cats")).wantMoved(t, "rename", path)
	b.upload(pet.ID, jpegFile)
	b.post("/console/orders", b.get(path).form(t, "/console/orders", "reference", "W-17", "note", "ring twice")).wantMoved(t, "order", "/console/orders/1")
	b.post("/console/orders/1", b.get(path).form(t, "/console/orders/1")).wantMoved(t, "approve", path)
	b.post("/console/orders/1/texts", b.get("/console/orders/1").form(t, "/console/orders/1/texts", "reference", "W-17", "note", "")).wantMoved(t, "no note", "/console/orders/1")

	before := s.left(secret)
	p := b.get(path)
	if got := before - s.left(secret) - 1; got != 4 {
		t.Errorf("got %d requests charged, want 4", got)
	}
	last := 0
	for _, part := range []string{
		"Order 1 changed", "<bdi>ring twice</bdi> → <span", "Order 1 approved", "<bdi>available</bdi> → <bdi>pending</bdi>", "Order 1 placed", "<bdi>W-17</bdi>",
		"Photo added", "<bdi>Bello</bdi> → <bdi>Bello von Testhund</bdi>", "<bdi>Dogs</bdi> → <bdi>Cats</bdi>", "<bdi>Ada</bdi>", "Pet added", "<bdi>Dogs</bdi>",
	} {
		at := strings.Index(p.body[last:], part)
		if at < 0 {
			t.Fatalf("got no %q after the %d bytes before it in\n%s", part, last, p.body)
		}
		last += at
	}
	p.want(t, "the pet", http.StatusOK, "Deliver order 1", `<bdi>W-17</bdi>`, `name="from" value="`+path+`"`, "category=Cats&#43;%282%29")
	b.get("/console/orders?reference=W-17").want(t, "by its reference", http.StatusOK, "Bello von Testhund")
	b.get("/console/orders?reference=W-1").want(t, "by another reference", http.StatusOK, "No order matches")
	if p := s.signedIn(animalstore.Read).get(path); strings.Contains(p.body, "<bdi>Ada</bdi>") || !strings.Contains(p.body, "another key") {
		t.Errorf("a reader sees who made the changes:\n%s", p.body)
	}
}

// TestMarkedOrders: several orders are approved at once, without a question, and delivered
// after one. The mark of a whole page needs no script.
func TestMarkedOrders(t *testing.T) {
	t.Parallel()
	s := start(t)
	b := s.signedIn(everything)
	for i := range 5 {
		s.order(s.Pet(fmt.Sprint("Rex ", i)).ID)
	}
	list := b.get("/console/orders")
	list.want(t, "the list", http.StatusOK, `href="/console/orders?marked=all">Mark all</a>`)
	if marked := b.get("/console/orders?marked=all"); strings.Count(marked.body, `form="marked" checked`) != 5 {
		t.Errorf("got no five marks in\n%s", marked.body)
	}
	form := list.form(t, "/console/orders/marked")
	form["mark"] = list.marks()[:5]
	b.post("/console/orders/marked?change=approved", form).wantMoved(t, "approve", "/console/orders").wantDone(t, "approved")
	b.post("/console/orders/marked?change=approved", form).wantMoved(t, "approve again", "/console/orders").wantDone(t, "approved")
	list = b.get("/console/orders?status=approved")
	form["mark"] = list.marks()[:5]
	question := b.post("/console/orders/marked?change=delivered", form)
	question.want(t, "deliver", http.StatusOK, "Deliver 5 orders?", "Rex 4")
	s.move(s.order(s.Pet("other").ID), animalstore.OrderApproved)
	other := b.get("/console/orders/2")
	b.post("/console/orders/2", other.form(t, "/console/orders/2", "status", "cancelled"))
	p := b.post("/console/orders/marked/change", question.form(t, "/console/orders/marked/change"))
	p.want(t, "with one that was cancelled", http.StatusConflict, "4 orders delivered", "One order not delivered", "Someone changed it", "Rex 1")
}
