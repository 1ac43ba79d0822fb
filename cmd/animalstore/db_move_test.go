package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/db/postgres/pgtest"
)

// mustMove moves a store and returns what was printed.
func mustMove(t *testing.T, from, to string) (table, said string) {
	t.Helper()
	var stdout, stderr strings.Builder
	if err := move(t.Context(), databaseFlag{"from", from}, databaseFlag{"to", to}, &stdout, &stderr); err != nil {
		t.Fatalf("move: %v\n%s%s", err, &stdout, &stderr)
	}
	return stdout.String(), stderr.String()
}

// TestMoveCarriesEverything there and back again, and between two of a kind.
func TestMoveCarriesEverything(t *testing.T) {
	t.Parallel()
	server := pgtest.Shared(t)
	file := func() string { return "sqlite:" + filepath.Join(t.TempDir(), "store.db") }
	first := file()
	withStore(t, first, func(store db.DB) { oddStore(t, store) })
	want := content(t, first)
	from, tables := first, ""
	for i, to := range []string{server.NewDatabase(t, ""), server.NewDatabase(t, ""), file(), file()} {
		table, said := mustMove(t, from, to)
		if got := content(t, to); got != want {
			t.Fatalf("move %d: got\n%s\nwant\n%s", i, got, want)
		}
		if tables == "" {
			tables = table
		}
		if table != tables {
			t.Errorf("move %d: got the table\n%s\nwant the one of the move before\n%s", i, table, tables)
		}
		if !strings.Contains(said, "Moved 40 rows in ") || strings.Contains(table, "source") {
			t.Errorf("move %d: got\n%s%s", i, said, table)
		}
		if got := content(t, from); got != want {
			t.Fatalf("move %d changed its source: got\n%s\nwant\n%s", i, got, want)
		}
		if i > 0 { // the next move has read it
			checkGoesOn(t, from, 1013, 2007, 5)
		}
		from = to
	}
	checkGoesOn(t, from, 1013, 2007, 5)
	checkGoesOn(t, first, 1013, 2007, 5)
	for _, line := range []string{`pets +10 +1013 +[0-9a-f]{16}`, `orders +6 +2007 +[0-9a-f]{16}`, `keys +4 +5 +[0-9a-f]{16}`, `secrets of keys +7 +- +[0-9a-f]{16}`,
		`limits and bans +2 +- `, `hours of usage +3 +- `, `idempotency records +2 +- `, `categories +6 +- `} {
		if !regexp.MustCompile(`(?m)^` + line).MatchString(tables) {
			t.Errorf("got the table\n%s\nwant a line like %s", tables, line)
		}
	}
}

// TestMoveOfAnEmptyStore: there is little to do, and nothing to stumble over.
func TestMoveOfAnEmptyStore(t *testing.T) {
	t.Parallel()
	for name, to := range newStores(t) {
		from := newStores(t)["SQLite"]
		withStore(t, from, func(db.DB) {})
		mustMove(t, from, to)
		withStore(t, to, func(store db.DB) {
			if pet, _, err := store.CreatePet(t.Context(), animalstore.NewPet{Name: "first", CategoryID: 1}, nil); err != nil || pet.ID != 1 {
				t.Errorf("%s: the first pet has id %d (%v), want 1", name, pet.ID, err)
			}
		})
	}
}

// moveTo is move with a target that something happens to.
func moveTo(t *testing.T, ctx context.Context, from, to string, around func(db.Target) db.Target) ([]db.Moved, error) {
	t.Helper()
	source, err := databaseFlag{"from", from}.openSource(ctx, true)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	target, err := databaseFlag{"to", to}.openTarget(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer target.Close()
	return db.Move(ctx, source, around(target), &moveProgress{w: &strings.Builder{}})
}

// tampering changes what passes through it.
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

// tampered is a cursor whose rows are changed, or left out.
type tampered struct {
	db.Cursor
	change func(values []any)
	skip   int // rows to leave out
	fail   error
	end    func()
}

func (c *tampered) Next() bool {
	for ; c.skip > 0; c.skip-- {
		if !c.Cursor.Next() {
			return false
		}
		c.Cursor.Values() // it counts as read
	}
	if c.end != nil {
		c.end()
	}
	return c.fail == nil && c.Cursor.Next()
}

func (c *tampered) Values() ([]any, error) {
	values, err := c.Cursor.Values()
	if err == nil && c.change != nil {
		c.change(values)
	}
	return values, err
}

func (c *tampered) Err() error {
	if c.fail != nil {
		return c.fail
	}
	return c.Cursor.Err()
}

// TestMoveComparesWhatIsStored: whatever differs in the end keeps the move from
// being committed.
func TestMoveComparesWhatIsStored(t *testing.T) {
	t.Parallel()
	from := newStores(t)["SQLite"]
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
	targets := newStores(t) // which every failure leaves as they were
	for name, f := range map[string]tampering{
		"a pet is left out":         {write: in("pets", tampered{skip: 1})},
		"a record is left out":      {write: in("answers", tampered{skip: 1})},
		"pets are renamed":          {write: in("pets", set(1, "Rex"))},
		"a category loses a name":   {write: in("categories", set(1, ""))},
		"orders change times":       {write: in("orders", set(4, int64(7)))},
		"bans end sooner":           {write: in("limit_states", set(10, int64(0)))},
		"old secrets live for ever": {write: in("key_secrets", set(2, int64(0)))},
		"usage is doubled": {write: in("usage", tampered{change: func(values []any) {
			values[2] = values[2].(int64) ^ 1
		}})},
		"keys are not revoked": {write: in("keys", set(10, int64(0)))},
		"ids are given again":  {lastID: func(id int64) int64 { return id - 1 }},
		"ids are skipped":      {lastID: func(id int64) int64 { return id + 1 }},
	} {
		for engine, to := range targets {
			moved, err := moveTo(t, t.Context(), from, to, func(target db.Target) db.Target {
				f.Target = target
				return &f
			})
			if !errors.Is(err, db.ErrDiffers) || f.committed {
				t.Errorf("%s, %s: got %v, committed %t, want ErrDiffers", name, engine, err, f.committed)
			}
			var table strings.Builder
			if printMoved(&table, moved); !strings.Contains(table.String(), " of the source") || !strings.Contains(table.String(), " of the target") {
				t.Errorf("%s, %s: got the table\n%s\nwant both sides", name, engine, &table)
			}
			wantEmpty(t, name+", "+engine, to)
		}
	}
}

// wantEmpty: nothing of a move that failed remains, the ids included, and another
// can begin.
func wantEmpty(t *testing.T, what, url string) {
	t.Helper()
	source, err := databaseFlag{"from", url}.openSource(t.Context(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	for i := range db.Tables {
		table := &db.Tables[i]
		_, rows, err := db.Breaches(t.Context(), source, db.Check{Query: "SELECT 'row' FROM " + table.Name}, 100)
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

// TestMoveCutOff: whatever ends it early, it says so, and nothing is left.
func TestMoveCutOff(t *testing.T) {
	t.Parallel()
	from := newStores(t)["SQLite"]
	withStore(t, from, func(store db.DB) { oddStore(t, store) })
	for engine, to := range newStores(t) {
		for name, test := range map[string]struct {
			cut  func(interrupt func()) tampered
			want string
		}{
			"by Ctrl-C": {func(interrupt func()) tampered { return tampered{end: interrupt} }, "stopped. Nothing was moved: the target is as it was, and so is the source. Run the same command again to start over"},
			"by a source that cannot be read": {func(func()) tampered { return tampered{fail: errors.New("struck by lightning")} },
				"copy the hours of usage: struck by lightning. Nothing was moved"},
			"by a full disk":       {func(func()) tampered { return tampered{fail: fmt.Errorf("%w: 0 left", db.ErrFull)} }, "the disk of the target is full. Nothing was moved"},
			"by a lost connection": {func(func()) tampered { return tampered{fail: fmt.Errorf("%w: gone", db.ErrUnavailable)} }, "the database did not answer any more. Nothing was moved"},
		} {
			ctx, interrupt := context.WithCancel(t.Context())
			_, err := moveTo(t, ctx, from, to, func(target db.Target) db.Target {
				return &tampering{Target: target, write: func(t *db.Table, rows db.Cursor) db.Cursor {
					if t.Name != "usage" {
						return rows
					}
					c := test.cut(interrupt)
					c.Cursor = rows
					return &c
				}}
			})
			if err == nil || !strings.HasPrefix(notMoved(ctx, err).Error(), test.want) {
				t.Errorf("%s, %s: got %v, want %q", engine, name, notMoved(ctx, err), test.want)
			}
			interrupt()
			wantEmpty(t, engine+", "+name, to)
		}
		mustMove(t, from, to)
		if got, want := content(t, to), content(t, from); got != want {
			t.Errorf("%s: after the failures, got\n%s\nwant\n%s", engine, got, want)
		}
	}
}

// TestMoveKeepsOthersOut: nobody else can write to a target, or serve the source.
func TestMoveKeepsOthersOut(t *testing.T) {
	t.Parallel()
	for engine, url := range newStores(t) {
		d := databaseFlag{"to", url}
		target, err := d.openTarget(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if second, err := d.openTarget(t.Context()); err == nil || !strings.Contains(err.Error(), "Stop it first") {
			t.Errorf("%s: a second target: got %v, %v, want a refusal", engine, second, err)
		}
		target.Close()
	}
}
