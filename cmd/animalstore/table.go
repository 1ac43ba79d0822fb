package main

import (
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/rivo/uniseg"
	"golang.org/x/term"
)

// screen is the terminal that something is printed on, if it is one.
type screen struct {
	terminal bool
	width    int  // in columns; 0 if not known
	colour   bool // may be used
	rewrites bool // a line can be written over
}

func screenOf(w io.Writer) screen {
	f, ok := w.(*os.File)
	if !ok || !term.IsTerminal(int(f.Fd())) {
		return screen{}
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		width = 0
	}
	smart := os.Getenv("TERM") != "dumb"
	return screen{terminal: true, width: width, colour: smart && os.Getenv("NO_COLOR") == "", rewrites: smart}
}

// colour is what a terminal is told before a text.
type colour string

const (
	plain  colour = ""
	red    colour = "\x1b[31m"
	green  colour = "\x1b[32m"
	yellow colour = "\x1b[33m"
	faint  colour = "\x1b[2m"
)

func (c colour) paint(text string) string {
	if c == plain || text == "" {
		return text
	}
	return string(c) + text + "\x1b[0m"
}

// cell is a text in a table.
type cell struct {
	text   string
	colour colour
}

// table prints rows in aligned columns. text/tabwriter would count the bytes of
// a colour as columns, and a Chinese character as one.
//
// Only a block of rows is held at a time. A column is as wide as its widest cell
// up to then, so that a long list keeps its shape with little memory.
type table struct {
	w      io.Writer
	screen screen
	shrink int // the column that is cut where the screen is too narrow; -1: none
	widths []int
	rows   [][]cell
}

func (t *table) add(row []cell) {
	for len(t.widths) < len(row) {
		t.widths = append(t.widths, 0)
	}
	for i, c := range row {
		t.widths[i] = max(t.widths[i], uniseg.StringWidth(c.text))
	}
	t.rows = append(t.rows, row)
}

const (
	gap           = 2  // columns between two cells
	leastOfShrunk = 10 // columns of a cell that is left when it is cut
)

// flush prints the rows added since the last time.
func (t *table) flush() error {
	widths := t.fit()
	var b strings.Builder
	for _, row := range t.rows {
		for i, c := range row {
			text := c.text
			if i == t.shrink {
				text = cut(text, widths[i])
			}
			if t.screen.colour {
				b.WriteString(c.colour.paint(text))
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

// fit narrows one column so that a row has room on the screen.
func (t *table) fit() []int {
	widths := append([]int(nil), t.widths...)
	if t.shrink < 0 || t.shrink >= len(widths) || t.screen.width == 0 {
		return widths
	}
	total := gap * (len(widths) - 1)
	for _, w := range widths {
		total += w
	}
	if over := total - t.screen.width; over > 0 {
		widths[t.shrink] = max(widths[t.shrink]-over, min(widths[t.shrink], leastOfShrunk))
	}
	return widths
}

// cut shortens a text to so many columns, and shows that it did.
func cut(text string, width int) string {
	if uniseg.StringWidth(text) <= width {
		return text
	}
	var kept strings.Builder
	used, state := 0, -1
	for text != "" {
		var cluster string
		var w int
		cluster, text, w, state = uniseg.FirstGraphemeClusterInString(text, state)
		if used+w > width-1 {
			break
		}
		kept.WriteString(cluster)
		used += w
	}
	return kept.String() + "…"
}

// field is a line of what is shown of one thing.
type field struct {
	name   string
	value  string
	colour colour
}

// printFields shows fields below each other: aligned on a terminal, with a tab
// between in a pipe.
func printFields(p *printer, fields []field) error {
	t := table{w: p.out, screen: p.screen, shrink: -1}
	for _, f := range fields {
		if p.screen.terminal {
			t.add([]cell{{text: f.name}, {visible(f.value), f.colour}})
		} else if _, err := fmt.Fprintf(p.out, "%s\t%s\n", f.name, visible(f.value)); err != nil {
			return err
		}
	}
	return t.flush()
}
