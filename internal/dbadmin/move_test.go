package dbadmin

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"animalstore/internal/db"
	"animalstore/internal/db/transfer"
)

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

// TestExplainFailedMove: every message says why, what the databases contain, and
// what to do next.
func TestExplainFailedMove(t *testing.T) {
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
		{t.Context(), transfer.ErrDiffers, "the target doesn't contain what the source contains, see the table. " + unchanged + "Please report this"},
		{t.Context(), fmt.Errorf("%w: 0 left", db.ErrFull), "the disk of the target is full. " + unchanged + "Free some space and run the same command again (storage full: 0 left)"},
		{t.Context(), fmt.Errorf("%w: gone", db.ErrUnavailable), "the database stopped responding. " + unchanged + "Run the same command again when it is back (storage unavailable: gone)"},
		{t.Context(), errors.New("copy the pets: unexpected failure"), "copy the pets: unexpected failure. " + unchanged + "Run the same command again once that is fixed"},
	} {
		if got := explainFailedMove(test.ctx, test.err).Error(); !strings.HasPrefix(got, test.want) {
			t.Errorf("%v:\ngot  %q\nwant %q", test.err, got, test.want)
		}
	}
}
