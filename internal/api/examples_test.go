package api_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"animalstore"
)

// TestParameterExamplesWork sends the example of each parameter of each GET on its
// own, as the docs page and other programs do.
func TestParameterExamplesWork(t *testing.T) {
	s := start(t)
	s.add(t, animalstore.NewPet{Name: "Rex", CategoryID: 7})
	s.do(t, call{method: "POST", path: "/v1/store/orders", body: `{"petId":1}`}).want(t, http.StatusCreated, "")
	ids := strings.NewReplacer("{petId}", "1", "{orderId}", "1", "{categoryId}", "7", "{keyId}", "1", "{webhookId}", "1")
	s.addWebhook(t)
	key, sent := s.key(t, everything), 0
	for path, item := range document().Paths.Map() {
		if item.Get == nil {
			continue
		}
		for _, p := range item.Get.Parameters {
			if p.Value.Example == nil || p.Value.In == "path" {
				continue
			}
			request := call{path: "/v1" + ids.Replace(path), key: key}
			example := strings.Trim(strings.ReplaceAll(fmt.Sprint(p.Value.Example), " ", ","), "[]")
			if p.Value.In == "header" {
				request.header = http.Header{p.Value.Name: {example}}
			} else {
				request.path += "?" + url.Values{p.Value.Name: {example}}.Encode()
			}
			if got := s.do(t, request); got.status != http.StatusOK {
				t.Errorf("GET %s with %s %s: got %v, want 200", path, p.Value.Name, example, got)
			}
			sent++
		}
	}
	if sent < 20 {
		t.Errorf("got %d examples, want those of all lists", sent)
	}
}
