package main

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
	"animalstore/internal/terminal"
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
	var out, notes bytes.Buffer
	if err := errors.Join(backUpStore(t.Context(), "sqlite:"+from, backup, silent()),
		restoreStore(t.Context(), backup, "sqlite:"+restored, terminal.NewPrinter(&out, &notes))); err != nil {
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

// TestCopyError: every message says why, what exists now, and what to do next.
func TestCopyError(t *testing.T) {
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
		if got := copyError(test.ctx, test.err, "Nothing.").Error(); !strings.Contains(got, test.want) {
			t.Errorf("%v:\n got %q\nwant %q in it", test.err, got, test.want)
		}
	}
}

// TestPrintMoved: a table that is the same on both sides has one line, and one
// that differs has two.
func TestPrintMoved(t *testing.T) {
	moved := []transfer.Moved{
		{Table: &db.Table{Holds: "pets", Serial: true}, From: transfer.Contents{Rows: 1234, LastID: 1300, Sum: [32]byte{0xab}}, Into: transfer.Contents{Rows: 1234, LastID: 1300, Sum: [32]byte{0xab}}},
		{Table: &db.Table{Holds: "usage"}, From: transfer.Contents{Rows: 2, Sum: [32]byte{1}}, Into: transfer.Contents{Rows: 1, Sum: [32]byte{2}}},
	}
	const want = `WHAT                 ROWS   NEXT ID  SHA-256
pets                 1,234  1301     ab00000000000000
usage of the source  2      -        0100000000000000
usage of the target  1      -        0200000000000000
`
	var got strings.Builder
	if printMoved(&got, moved); got.String() != want {
		t.Errorf("got\n%s\nwant\n%s", &got, want)
	}
}

// TestMoveError: every message says why, what the databases contain, and
// what to do next.
func TestMoveError(t *testing.T) {
	const unchanged = "Nothing was moved: the target and the source are unchanged. "
	stopped, stop := context.WithCancel(t.Context())
	stop()
	for _, test := range []struct {
		ctx  context.Context
		err  error
		want string
	}{
		{stopped, context.Canceled, "stopped. " + unchanged + "Run the same command again to start over"},
		{t.Context(), fmt.Errorf("commit: %w", db.ErrOutcomeUnknown), "the connection was lost during the commit, so either everything was moved or nothing. Run the same command again: it refuses if everything was moved"},
		{t.Context(), &transfer.NotEmptyError{Holds: []string{"pets: 12", "keys: 1"}}, "the target is not empty (pets: 12, keys: 1). Name an empty database with --to"},
		{t.Context(), transfer.ErrDiffers, "the target's content differs from the source's, see the table. " + unchanged + "Please report this"},
		{t.Context(), fmt.Errorf("%w: 0 left", db.ErrFull), "the disk of the target is full. " + unchanged + "Free some space and run the same command again (storage full: 0 left)"},
		{t.Context(), fmt.Errorf("%w: gone", db.ErrUnavailable), "the database stopped responding. " + unchanged + "Run the same command again when it is back (storage unavailable: gone)"},
		{t.Context(), errors.New("copy the pets: unexpected failure"), "copy the pets: unexpected failure. " + unchanged + "Run the same command again once that is fixed"},
	} {
		if got := moveError(test.ctx, test.err).Error(); !strings.HasPrefix(got, test.want) {
			t.Errorf("%v:\ngot  %q\nwant %q", test.err, got, test.want)
		}
	}
}
