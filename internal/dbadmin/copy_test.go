package dbadmin

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/db/transfer"
	"animalstore/internal/sample"
	"animalstore/internal/terminal"
)

// TestBackupAndRestore: each says what it did, and a restore never replaces a store.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	store, dir := newStoreFile(t), t.TempDir()
	backup, restored := filepath.Join(dir, "it's.db"), filepath.Join(dir, "new.db")
	var notes bytes.Buffer
	p := terminal.NewPrinter(&notes, &notes, false)
	if err := Backup(t.Context(), "sqlite:"+store, backup, p); err != nil {
		t.Fatal(err)
	}
	if err := Restore(t.Context(), backup, "sqlite:"+restored, p); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"Backed up " + store + " to " + backup, "checks passed.", "Restored " + backup + " to " + restored, "Next: run"} {
		if !strings.Contains(notes.String(), want) {
			t.Errorf("got %s\nwant %q in it", &notes, want)
		}
	}
	err := Restore(t.Context(), store, "sqlite:"+backup, p)
	if want := "mkdir old-store && mv '" + filepath.Join(dir, `it'\''s.db`) + "' old-store/"; err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("got %v\nwant %q at its end", err, want)
	}
}

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
	var out, notes bytes.Buffer
	if err := errors.Join(Backup(t.Context(), "sqlite:"+from, backup, silent()),
		Restore(t.Context(), backup, "sqlite:"+restored, terminal.NewPrinter(&out, &notes, false))); err != nil {
		t.Fatal(err)
	}
	if want := "Paused 2 webhooks"; !strings.Contains(notes.String(), want) {
		t.Errorf("got %s\nwant %q in it", &notes, want)
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

// newStoreFile is the file of a store that nothing has open.
func newStoreFile(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "store.db")
	store := openStoreAt(t, file)
	mustFill(t, store, sample.Store{Seed: 1, Pets: 10})
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestPostgresHasItsOwnTools(t *testing.T) {
	t.Parallel()
	const url = "postgres://me:secret@db1/store"
	for _, err := range []error{Backup(t.Context(), url, "a b", silent()), Restore(t.Context(), "a b", url, silent())} {
		if err == nil || !strings.Contains(err.Error(), "'a b'") || strings.Contains(err.Error(), "secret") {
			t.Errorf("got %v, want a command for the file 'a b', without the password", err)
		}
	}
}

// TestExplainFailedCopy: every message says why, what there is now, and what to do next.
func TestExplainFailedCopy(t *testing.T) {
	t.Parallel()
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for _, test := range []struct {
		ctx  context.Context
		err  error
		want string
	}{
		{stopped, context.Canceled, "stopped. Nothing."},
		{t.Context(), fmt.Errorf("a.db %w", transfer.ErrExists), "name a file that doesn't exist yet. Nothing."},
		{t.Context(), fmt.Errorf("%w: 0 left", db.ErrFull), "the disk of the new file is full. Nothing. Free some space and run the same command again"},
		{t.Context(), fmt.Errorf("a.db: %w", transfer.ErrDamaged), `Nothing. Run "animalstore db check" on the file that was copied`},
		{t.Context(), errors.New("unexpected failure"), "unexpected failure. Nothing."},
	} {
		if got := explainFailedCopy(test.ctx, test.err, "Nothing.").Error(); !strings.Contains(got, test.want) {
			t.Errorf("%v:\n got %q\nwant %q in it", test.err, got, test.want)
		}
	}
}
