package pages

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"animalstore"
)

// discard is a response that keeps nothing of its body.
type discard struct{ header http.Header }

func (d discard) Header() http.Header         { return d.header }
func (d discard) WriteHeader(int)             {}
func (d discard) Write(p []byte) (int, error) { return len(p), nil }

// BenchmarkUnpackedBundle is what the largest asset costs for a client that doesn't
// accept gzip.
func BenchmarkUnpackedBundle(b *testing.B) {
	p := New(animalstore.Production, "")
	r := httptest.NewRequest("GET", p.assets.prefix+"swagger-ui-bundle.js", nil)
	b.ReportAllocs()
	for b.Loop() {
		p.Serve(discard{http.Header{}}, r, false)
	}
}
