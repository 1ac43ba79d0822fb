//go:build unix

package transfer_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/db/transfer"
)

// rowCounter is a [transfer.Progress] that counts the rows of each phase.
type rowCounter struct{ copying, comparing, did int64 }

func (c *rowCounter) Copying(rows int64)   { c.copying += rows }
func (c *rowCounter) Comparing(rows int64) { c.comparing += rows }
func (c *rowCounter) Did(rows int)         { c.did += int64(rows) }

// moveTo moves a store into a target, which around may wrap.
func moveTo(t *testing.T, ctx context.Context, from, to string, progress transfer.Progress, around func(db.Target) db.Target) ([]transfer.Moved, error) {
	t.Helper()
	source := openSource(t, from, true)
	defer source.Close()
	target, err := openTarget(t, to)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	return transfer.Move(ctx, source, around(target), progress)
}

func mustMove(t *testing.T, from, to string) []transfer.Moved {
	t.Helper()
	var progress rowCounter
	moved, err := moveTo(t, t.Context(), from, to, &progress, func(target db.Target) db.Target { return target })
	if err != nil {
		t.Fatalf("Move: %v", err)
	}
	rows := int64(0)
	for _, m := range moved {
		if rows += m.Into.Rows; m.From != m.Into {
			t.Errorf("the %s differ: %+v and %+v", m.Table.Holds, m.From, m.Into)
		}
	}
	if want := (rowCounter{rows, rows, 2 * rows}); progress != want {
		t.Errorf("got progress %+v, want %+v", progress, want)
	}
	return moved
}

// TestMoveCarriesEverything_Slow moves from one engine to the other and back, and between
// two databases of the same engine.
func TestMoveCarriesEverything_Slow(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	first := newFile(t)
	withStore(t, first, func(store db.DB) { oddStore(t, store) })
	want := content(t, first)
	from := first
	var firstMove []transfer.Moved
	for i, to := range []string{server.NewDatabase(t, ""), server.NewDatabase(t, ""), newFile(t), newFile(t)} {
		moved := mustMove(t, from, to)
		if got := content(t, to); got != want {
			t.Fatalf("move %d: got\n%s\nwant\n%s", i, got, want)
		}
		if firstMove == nil {
			firstMove = moved
		}
		if !slices.Equal(moved, firstMove) {
			t.Errorf("move %d: got %+v, want the same as the first move: %+v", i, moved, firstMove)
		}
		if got := content(t, from); got != want {
			t.Fatalf("move %d changed its source: got\n%s\nwant\n%s", i, got, want)
		}
		if i > 0 { // the next move has read it
			checkGoesOn(t, from, 1015, 2007, 5)
		}
		from = to
	}
	checkGoesOn(t, from, 1015, 2007, 5)
	checkGoesOn(t, first, 1015, 2007, 5)
	rows := map[string]int64{}
	for _, m := range firstMove {
		rows[m.Table.Name] = m.Into.Rows
	}
	for _, table := range db.Tables {
		if rows[table.Name] == 0 {
			t.Errorf("no row of %s was moved", table.Name)
		}
	}
}

func TestMoveOfAnEmptyStore(t *testing.T) {
	t.Parallel()
	from, to := newFile(t), newStore(t)
	withStore(t, from, func(db.DB) {})
	mustMove(t, from, to)
	withStore(t, to, func(store db.DB) {
		if pet, _, err := store.CreatePet(t.Context(), animalstore.NewPet{Name: "first", CategoryID: 1}, nil); err != nil || pet.ID != 1 {
			t.Errorf("the first pet has id %d (%v), want 1", pet.ID, err)
		}
	})
}

// tampering is a target that changes the rows written to it.
type tampering struct {
	db.Target
	write     func(t *db.Table, rows db.Cursor) db.Cursor
	lastID    func(id int64) int64
	committed bool
}

func (f *tampering) Write(ctx context.Context, t *db.Table, rows db.Cursor) error {
	if f.write != nil {
		rows = f.write(t, rows)
	}
	return f.Target.Write(ctx, t, rows)
}

func (f *tampering) SetLastID(ctx context.Context, t *db.Table, id int64) error {
	if f.lastID != nil {
		id = f.lastID(id)
	}
	return f.Target.SetLastID(ctx, t, id)
}

func (f *tampering) Commit(ctx context.Context) error {
	f.committed = true
	return f.Target.Commit(ctx)
}

// tampered is a cursor that changes or skips rows.
type tampered struct {
	db.Cursor
	change func(values []any)
	skip   int // rows
	end    func()
}

func (c *tampered) Next() bool {
	for ; c.skip > 0; c.skip-- {
		if !c.Cursor.Next() {
			return false
		}
		c.Cursor.Values() // so that the row counts as read
	}
	if c.end != nil {
		c.end()
	}
	return c.Cursor.Next()
}

func (c *tampered) Values() ([]any, error) {
	values, err := c.Cursor.Values()
	if err == nil && c.change != nil {
		c.change(values)
	}
	return values, err
}

// TestMoveComparesWhatIsStored: a move commits nothing if anything differs.
func TestMoveComparesWhatIsStored(t *testing.T) {
	t.Parallel()
	from := newFile(t)
	withStore(t, from, func(store db.DB) { oddStore(t, store) })
	in := func(table string, tamper tampered) func(*db.Table, db.Cursor) db.Cursor {
		return func(t *db.Table, rows db.Cursor) db.Cursor {
			if t.Name != table {
				return rows
			}
			c := tamper
			c.Cursor = rows
			return &c
		}
	}
	set := func(column int, value any) tampered {
		return tampered{change: func(values []any) { values[column] = value }}
	}
	to := newStore(t) // every failure leaves it empty
	for name, f := range map[string]tampering{
		"a pet is left out":        {write: in("pets", tampered{skip: 1})},
		"pets are renamed":         {write: in("pets", set(1, "Rex"))},
		"old secrets never expire": {write: in("key_secrets", set(2, int64(0)))},
		"ids are assigned again":   {lastID: func(id int64) int64 { return id - 1 }},
	} {
		moved, err := moveTo(t, t.Context(), from, to, new(rowCounter), func(target db.Target) db.Target {
			f.Target = target
			return &f
		})
		if !errors.Is(err, transfer.ErrDiffers) || f.committed {
			t.Errorf("%s: got %v, committed %t, want ErrDiffers", name, err, f.committed)
		}
		if !slices.ContainsFunc(moved, func(m transfer.Moved) bool { return m.From != m.Into }) {
			t.Errorf("%s: got %+v, want a table that differs", name, moved)
		}
		wantEmpty(t, name, to)
	}
}

// wantEmpty fails the test unless a failed move left nothing behind, including ids, and
// another move can begin.
func wantEmpty(t *testing.T, what, url string) {
	t.Helper()
	source := openSource(t, url, true)
	defer source.Close()
	for i := range db.Tables {
		table := &db.Tables[i]
		_, rows, err := transfer.Violations(t.Context(), source, db.Check{Query: "SELECT 'row' FROM " + table.Name}, 100)
		if err != nil {
			t.Fatal(err)
		}
		if len(rows) > 0 {
			t.Errorf("%s: %d rows are left in %s, want none", what, len(rows), table.Name)
		}
		if !table.Serial {
			continue
		}
		if id, err := source.LastID(t.Context(), table); err != nil || id != 0 {
			t.Errorf("%s: the last id in %s is %d (%v), want 0", what, table.Name, id, err)
		}
	}
}

// TestMoveCutOff: a move that is interrupted leaves nothing in the target.
func TestMoveCutOff(t *testing.T) {
	t.Parallel()
	from := newFile(t)
	withStore(t, from, func(store db.DB) { oddStore(t, store) })
	to := newStore(t)
	ctx, interrupt := context.WithCancel(t.Context())
	_, err := moveTo(t, ctx, from, to, new(rowCounter), func(target db.Target) db.Target {
		return &tampering{Target: target, write: func(t *db.Table, rows db.Cursor) db.Cursor {
			if t.Name != "usage" {
				return rows
			}
			return &tampered{Cursor: rows, end: interrupt}
		}}
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	interrupt()
	wantEmpty(t, "a move that was cut off", to)
	mustMove(t, from, to)
	if got, want := content(t, to), content(t, from); got != want {
		t.Errorf("after the failure, got\n%s\nwant\n%s", got, want)
	}
}

// TestMoveKeepsOthersOut: a target can only be opened once at a time. Package postgres has the
// same test, with a shorter wait.
func TestMoveKeepsOthersOut(t *testing.T) {
	t.Parallel()
	url := newFile(t)
	target, err := openTarget(t, url)
	if err != nil {
		t.Fatal(err)
	}
	if second, err := openTarget(t, url); err == nil {
		second.Close()
		t.Error("a second target was opened")
	}
	target.Close()
}
