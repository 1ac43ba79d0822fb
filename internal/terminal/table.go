package terminal

import (
	"io"
	"slices"
	"strings"

	"github.com/rivo/uniseg"
)

const (
	gap        = 2  // columns between two cells
	leastWidth = 20 // a cell isn't cut to less
)

// table prints rows: aligned on a terminal, separated by tabs in a pipe. text/tabwriter
// would count a colour's bytes as columns, and a double-width Chinese character as one.
//
// A column is as wide as its widest cell so far, so that a long list that is printed in
// blocks keeps its shape.
type table struct {
	screen      Screen
	keepColumns bool // even if they don't fit on the screen
	widths      []int
	rows        [][]cell
}

type cell struct {
	text   string
	colour Colour
}

func (t *table) add(row []cell) {
	if t.widths == nil {
		t.widths = make([]int, len(row))
	}
	for i, c := range row {
		t.widths[i] = max(t.widths[i], uniseg.StringWidth(c.text))
	}
	t.rows = append(t.rows, row)
}

// flush prints the rows added since the last call.
func (t *table) flush(w io.Writer) error {
	widths := t.fit()
	var lines strings.Builder
	for _, row := range t.rows {
		for i, width := range widths {
			t.write(&lines, row[i], width, i == len(widths)-1)
		}
	}
	t.rows = t.rows[:0]
	_, err := io.WriteString(w, lines.String())
	return err
}

func (t *table) write(lines *strings.Builder, c cell, width int, last bool) {
	text, separator := c.text, "\t"
	if t.screen.Terminal {
		text = cut(text, width)
		separator = strings.Repeat(" ", width-uniseg.StringWidth(text)+gap)
	}
	if t.screen.Colour && c.colour != "" && text != "" {
		text = string(c.colour) + text + "\x1b[0m"
	}
	if last {
		separator = "\n"
	}
	lines.WriteString(text + separator)
}

// fit returns the widths of the columns to print. To fit on the screen, it narrows the
// widest and then leaves out the last ones.
func (t *table) fit() []int {
	widths := slices.Clone(t.widths)
	for t.screen.Width > 0 && len(widths) > 0 {
		total := -gap
		for _, w := range widths {
			total += w + gap
		}
		over := total - t.screen.Width
		widest := slices.Index(widths, slices.Max(widths))
		switch {
		case over <= 0:
			return widths
		case widths[widest] > leastWidth:
			widths[widest] = max(leastWidth, widths[widest]-over)
		case t.keepColumns || len(widths) == 1:
			return widths
		default:
			widths = widths[:len(widths)-1]
		}
	}
	return widths
}
