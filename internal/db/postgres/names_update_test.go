//go:build unix

package postgres

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"animalstore/internal/db"
	"animalstore/internal/db/postgres/pgtest"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
)

// TestInterruptedUpdateContinues: an update that ends in the middle keeps what it has done.
// Until it is finished, the tables count as those of the version before. Meanwhile and
// afterwards, instances of that version can read and not write.
func TestInterruptedUpdateContinues(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	url := server.NewDatabase(t, "")
	config, err := pgx.ParseConfig(url)
	if err != nil {
		t.Fatal(err)
	}
	config.RuntimeParams["animalstore.events"] = "on" // as older versions set it
	pool := stdlib.OpenDB(*config)
	defer pool.Close()
	provider, err := newProvider(pool, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := provider.UpTo(t.Context(), namesVersion-1); err != nil {
		t.Fatal(err)
	}
	old, err := pgx.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer old.Close(context.WithoutCancel(t.Context()))
	const pets = foldBatch + 1000
	_, err = old.Exec(t.Context(), fmt.Sprintf("INSERT INTO pets (name, category_id, status) SELECT 'Straße ' || n, 7, 0 FROM generate_series(1, %d) n", pets))
	if err != nil {
		t.Fatal(err)
	}
	olderOnlyReads := func(when string) {
		t.Helper()
		var name string
		if err := old.QueryRow(t.Context(), "SELECT name FROM pets WHERE id = 1").Scan(&name); err != nil || name != "Straße 1" {
			t.Errorf("%s, an older instance read %q, %v", when, name, err)
		}
		if _, err := old.Exec(t.Context(), "UPDATE pets SET name = 'x' WHERE id = 1"); !errors.Is(failed("x", err), db.ErrUnavailable) {
			t.Errorf("%s, an older instance wrote: %v, want ErrUnavailable", when, err)
		}
	}
	ctx, interrupt := context.WithCancel(t.Context())
	_, err = Open(ctx, url, Options{Progress: func(u db.Update) {
		if u.Done == foldBatch {
			olderOnlyReads("during the update")
			interrupt()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("Open: %v, want it to be interrupted", err)
	}
	olderOnlyReads("after an interrupted update")
	if have, _, err := Versions(t.Context(), url); err != nil || have != namesVersion-1 {
		t.Errorf("Versions = %d, %v, want the version before names", have, err)
	}
	var first, last db.Update
	d := mustOpen(t, url, Options{Timeout: patient, Progress: func(u db.Update) {
		if first.Total == 0 {
			first = u
		}
		if u.Total > 0 {
			last = u
		}
	}})
	if first.Done != foldBatch || first.Total != pets || last.Done != pets {
		t.Errorf("the update continued with %+v and ended with %+v, want %d and then all of %d", first, last, foldBatch, pets)
	}
	rows, err := d.pool.Query(t.Context(), "SELECT name, folded_name FROM pets")
	if err != nil {
		t.Fatal(err)
	}
	var name, folded string
	n, wrong := 0, 0
	_, err = pgx.ForEachRow(rows, []any{&name, &folded}, func() error {
		if n++; folded != db.FoldName(name) {
			wrong++
		}
		return nil
	})
	if err != nil || n != pets || wrong > 0 {
		t.Errorf("%d of %d names are folded wrong, %v", wrong, n, err)
	}
	olderOnlyReads("after the update")
	if have, known, err := Versions(t.Context(), url); err != nil || have != known {
		t.Errorf("Versions = %d, %d, %v, want both the same", have, known, err)
	}
}
