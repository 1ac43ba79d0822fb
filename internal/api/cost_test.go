package api_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"animalstore"
	"animalstore/internal/keys"
)

// blackHole is a response that keeps nothing but its header fields.
type blackHole struct {
	header http.Header
	status int
}

func (b *blackHole) Header() http.Header         { return b.header }
func (b *blackHole) WriteHeader(status int)      { b.status = status }
func (b *blackHole) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkRequest is what a warm read costs without net/http around it.
func BenchmarkRequest(b *testing.B) {
	s := start(b)
	secret, _ := s.makeKey(b, keys.Mint(s.env), func(k *animalstore.NewKey) {
		k.Plan, k.Limits = animalstore.PlanEnterprise, animalstore.Limits{PerMinute: 1e9, PerDay: 1e9}
	})
	for i := range 100 {
		pet := animalstore.NewPet{Name: fmt.Sprint("Rex the dog ", i), CategoryID: 7}
		if _, _, err := s.db.CreatePet(b.Context(), pet, nil); err != nil {
			b.Fatal(err)
		}
	}
	for _, c := range []struct{ name, uri string }{
		{"list", "/v1/pets"},
		{"list from a cursor", "/v1/pets?limit=20&cursor=L3YxL3BldHN8NTB8"}, // /v1/pets|50|
		{"get", "/v1/pets/7"},
	} {
		b.Run(c.name, func(b *testing.B) {
			r := httptest.NewRequest("GET", c.uri, nil)
			r.Header.Set("Authorization", "Bearer "+secret)
			w := &blackHole{header: make(http.Header, 16)}
			b.ReportAllocs()
			for b.Loop() {
				clear(w.header)
				s.handler.ServeHTTP(w, r)
				if w.status != 200 {
					b.Fatalf("got %d", w.status)
				}
			}
		})
	}
}
