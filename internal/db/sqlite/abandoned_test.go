package sqlite

import (
	"path/filepath"
	"testing"
	"time"

	"animalstore"
)

// TestReleaseAbandoned: what a server that was killed had claimed is due again when the
// next one starts.
func TestReleaseAbandoned(t *testing.T) {
	t.Parallel()
	d := mustOpen(t, filepath.Join(t.TempDir(), "store.db"), Options{Serve: true})
	now := animalstore.At(time.Now())
	webhook, err := d.CreateWebhook(t.Context(), animalstore.NewWebhook{URL: "https://example.com", Types: "pet.*"}, "whsec_b25l", now)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := d.PingWebhook(t.Context(), webhook.ID, now); err != nil {
		t.Fatal(err)
	}
	claim := func(want int) {
		t.Helper()
		if due, err := d.ClaimDeliveries(t.Context(), now, animalstore.At(now.Add(time.Minute))); err != nil || len(due) != want {
			t.Errorf("claimed %d, %v, want %d", len(due), err, want)
		}
	}
	claim(1)
	claim(0)
	if err := d.ReleaseAbandoned(t.Context()); err != nil {
		t.Fatal(err)
	}
	claim(1)
}
