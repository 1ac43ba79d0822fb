package main

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// TestRestorePausesWebhooks: a restored store sends nothing until somebody resumes it.
func TestRestorePausesWebhooks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	from, backup, restored := filepath.Join(dir, "store.db"), filepath.Join(dir, "backup.db"), filepath.Join(dir, "restored.db")
	store := openStoreAt(t, from)
	for _, url := range []string{"https://example.com/1", "https://example.com/2"} {
		in := animalstore.NewWebhook{URL: url, Types: animalstore.DefaultEventPatterns}
		if _, err := store.CreateWebhook(t.Context(), in, "whsec_b25l", animalstore.At(time.Now())); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(backUpStore(t.Context(), "sqlite:"+from, backup, silent()),
		restoreStore(t.Context(), backup, "sqlite:"+restored, silent())); err != nil {
		t.Fatal(err)
	}
	for file, want := range map[string]animalstore.WebhookState{from: animalstore.WebhookActive, restored: animalstore.WebhookPaused} {
		store := openStoreAt(t, file)
		webhooks, err := store.Webhooks(t.Context(), db.WebhookQuery{Limit: 10})
		if err := errors.Join(err, store.Close()); err != nil || len(webhooks) != 2 {
			t.Fatalf("got %v, %v, want 2 webhooks", webhooks, err)
		}
		for _, w := range webhooks {
			if w.State != want {
				t.Errorf("%s: webhook %d is %s, want %s", filepath.Base(file), w.ID, w.State, want)
			}
		}
	}
}
