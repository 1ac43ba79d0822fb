package terminal

import (
	"io"
	"slices"
	"strings"

	"github.com/rivo/uniseg"
)

// Cell is text in a table.
type Cell struct {
	Text   string
	Colour Colour
}

// Table prints rows in aligned columns. text/tabwriter would count the bytes of
// a colour as columns, and a Chinese character as one.
//
// Flush may be called after any number of rows. A column is as wide as its
// widest cell so far, so that a long list keeps its shape with little memory.
type Table struct {
	w      io.Writer
	screen Screen
	shrink int // the column that is cut if the screen is too narrow; -1: none
	widths []int
	rows   [][]Cell
}

// NewTable returns a table that is aligned on a terminal and elsewhere.
func NewTable(w io.Writer) *Table {
	return &Table{w: w, screen: ScreenOf(w), shrink: -1}
}

// Add adds a row.
func (t *Table) Add(row ...Cell) {
	for len(t.widths) < len(row) {
		t.widths = append(t.widths, 0)
	}
	for i, c := range row {
		t.widths[i] = max(t.widths[i], uniseg.StringWidth(c.Text))
	}
	t.rows = append(t.rows, row)
}

// AddText adds a row without colours.
func (t *Table) AddText(texts ...string) {
	row := make([]Cell, len(texts))
	for i, text := range texts {
		row[i].Text = text
	}
	t.Add(row...)
}

const (
	gap        = 2  // columns between two cells
	leastWidth = 10 // columns that are left of a cell that is cut
)

// Flush prints the rows added since the last call.
func (t *Table) Flush() error {
	widths := t.fit()
	var b strings.Builder
	for _, row := range t.rows {
		for i, c := range row {
			text := c.Text
			if i == t.shrink {
				text = cut(text, widths[i])
			}
			if t.screen.Colour {
				b.WriteString(c.Colour.paint(text))
			} else {
				b.WriteString(text)
			}
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", widths[i]-uniseg.StringWidth(text)+gap))
			}
		}
		b.WriteByte('\n')
	}
	t.rows = t.rows[:0]
	_, err := io.WriteString(t.w, b.String())
	return err
}

// fit narrows one column so that a row fits on the screen.
func (t *Table) fit() []int {
	widths := slices.Clone(t.widths)
	if t.shrink < 0 || t.shrink >= len(widths) || t.screen.Width == 0 {
		return widths
	}
	total := gap * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	if over := total - t.screen.Width; over > 0 {
		widths[t.shrink] = max(widths[t.shrink]-over, min(widths[t.shrink], leastWidth))
	}
	return widths
}
