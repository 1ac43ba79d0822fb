package sqlite

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
)

// manyOldPets creates a store of the version before names, with this many pets more than
// one transaction folds.
func manyOldPets(t *testing.T, more int) (path string, pets int64) {
	t.Helper()
	path, pets = oldStore(t, namesVersion-1), int64(foldBatch+more)
	script(t, path, fmt.Sprintf(`
		DELETE FROM pets;
		WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d)
		INSERT INTO pets SELECT 3 * i, 'Straße ' || i, 7, 0 FROM n`, pets))
	return path, pets
}

// TestInterruptedUpdateContinues: an update that ends in the middle keeps what it has done.
// Until it is finished, no program takes the store for one of this version.
func TestInterruptedUpdateContinues(t *testing.T) {
	path, pets := manyOldPets(t, 1000)
	ctx, interrupt := context.WithCancel(t.Context())
	_, err := Open(ctx, path, Options{Serve: true, Progress: func(u db.Update) {
		if u.Done == foldBatch {
			interrupt()
		}
	}})
	if !errors.Is(err, context.Canceled) {
		t.Fatalf("Open: %v, want it to be interrupted", err)
	}
	if have, _, err := Versions(path); err != nil || have != namesVersion-1 {
		t.Errorf("Versions = %d, %v, want the version before names", have, err)
	}
	if _, err := OpenSource(t.Context(), path, false); err == nil || !strings.Contains(err.Error(), "animalstore db migrate") {
		t.Errorf("OpenSource: %v, want the advice to update the tables", err)
	}
	conn, err := sqlite.OpenConn(path, sqlite.OpenReadOnly)
	if err != nil {
		t.Fatal(err)
	}
	if version, err := selectInt(conn, "version", "PRAGMA user_version"); err != nil || version < namesVersion {
		t.Errorf("an older program sees version %d, %v, and would serve it", version, err)
	}
	if err := conn.Close(); err != nil {
		t.Fatal(err)
	}
	var first db.Update
	d := mustOpen(t, path, Options{MustExist: true, Progress: func(u db.Update) {
		if first.Step == "" {
			first = u
		}
	}})
	if first.Done != foldBatch || first.Total != pets {
		t.Errorf("the update continued with %+v, want %d done of %d", first, foldBatch, pets)
	}
	if have, known, err := Versions(path); err != nil || have != known {
		t.Errorf("Versions = %d, %d, %v, want both the same", have, known, err)
	}
	wrong := 0
	err = d.read(t.Context(), func(c *sqlite.Conn) error {
		return selectEach(c, "select names", func(stmt *sqlite.Stmt) error {
			if stmt.ColumnText(1) != db.FoldName(stmt.ColumnText(0)) {
				wrong++
			}
			return nil
		}, "SELECT name, folded_name FROM pets")
	})
	if err != nil || wrong > 0 {
		t.Errorf("%d names are folded wrong, %v", wrong, err)
	}
	found, _, err := d.PetsByName(t.Context(), db.NameQuery{Prefix: db.FoldName(fmt.Sprint("STRASSE ", pets)), Limit: 2})
	if err != nil || len(found) != 1 || found[0].ID != 3*pets {
		t.Errorf("the last pet: found %v, %v", found, err)
	}
}

// TestCommandDuringAnUpdate: a command that would have to wait long for an update by
// another process says so.
func TestCommandDuringAnUpdate(t *testing.T) {
	t.Parallel() // it waits
	path, _ := manyOldPets(t, 1)
	_, err := Open(t.Context(), path, Options{Serve: true, Progress: func(u db.Update) {
		if u.Done == foldBatch {
			wantRefused(t, path, Options{MustExist: true}, "another animalstore is updating the tables")
		}
	}})
	if err != nil {
		t.Error(err)
	}
}
