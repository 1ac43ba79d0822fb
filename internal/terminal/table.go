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

// Table prints rows in aligned columns. text/tabwriter would count a colour's bytes as
// columns, and a double-width Chinese character as one.
//
// Flush may be called after any number of rows. A column is as wide as its
// widest cell so far, so that a long list keeps its shape with little memory.
type Table struct {
	w      io.Writer
	screen Screen
	shrink int // the column that is cut if the screen is too narrow; -1: none
	drop   []int
	hidden []bool // the columns that are left out; nil until the first row is printed
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
	leastWidth = 10 // minimum width of a cell that is cut
)

// Flush prints the rows added since the last call.
func (t *Table) Flush() error {
	if len(t.rows) == 0 {
		return nil
	}
	if t.hidden == nil {
		t.hide()
	}
	widths := t.fit()
	var b strings.Builder
	for _, row := range t.rows {
		last := len(row) - 1
		for t.hidden[last] {
			last--
		}
		for i, c := range row[:last+1] {
			if t.hidden[i] {
				continue
			}
			text := c.Text
			if i == t.shrink {
				text = cut(text, widths[i])
			}
			if t.screen.Colour {
				b.WriteString(c.Colour.paint(text))
			} else {
				b.WriteString(text)
			}
			if i < last {
				b.WriteString(strings.Repeat(" ", widths[i]-uniseg.StringWidth(text)+gap))
			}
		}
		b.WriteByte('\n')
	}
	t.rows = t.rows[:0]
	_, err := io.WriteString(t.w, b.String())
	return err
}

// hide leaves out columns until the rest fits on the screen, or no more may be left
// out. A column that can be cut counts with its minimum width.
func (t *Table) hide() {
	t.hidden = make([]bool, len(t.widths))
	if t.screen.Width == 0 {
		return
	}
	for {
		least := t.total(t.widths)
		if t.shrink >= 0 {
			least -= max(0, t.widths[t.shrink]-leastWidth)
		}
		first := -1
		for i, order := range t.drop {
			if order > 0 && !t.hidden[i] && (first < 0 || order > t.drop[first]) {
				first = i
			}
		}
		if least <= t.screen.Width || first < 0 {
			return
		}
		t.hidden[first] = true
	}
}

// total is the width of a row without the columns that are left out.
func (t *Table) total(widths []int) int {
	total := -gap
	for i, w := range widths {
		if !t.hidden[i] {
			total += w + gap
		}
	}
	return total
}

// fit narrows one column so that a row fits on the screen.
func (t *Table) fit() []int {
	widths := slices.Clone(t.widths)
	if t.shrink < 0 || t.shrink >= len(widths) || t.screen.Width == 0 {
		return widths
	}
	if over := t.total(widths) - t.screen.Width; over > 0 {
		widths[t.shrink] = max(widths[t.shrink]-over, min(widths[t.shrink], leastWidth))
	}
	return widths
}
