package terminal

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"time"
)

// Printer prints the results of a command: a table on a terminal, tab-separated lines
// in a pipe, or JSON if requested.
type Printer struct {
	Out    io.Writer
	Screen Screen // the screen of Out
	JSON   bool

	Notes      io.Writer // messages that aren't results: standard error
	NotesWidth int       // the width of its screen; 0: don't wrap
}

// NewPrinter returns a printer for a command's standard output and error.
func NewPrinter(out, notes io.Writer, asJSON bool) *Printer {
	return &Printer{Out: out, Screen: ScreenOf(out), JSON: asJSON, Notes: notes, NotesWidth: ScreenOf(notes).Width}
}

// Note prints a message next to the results.
func (p *Printer) Note(format string, args ...any) {
	fmt.Fprintln(p.Notes, Wrap(fmt.Sprintf(format, args...), p.NotesWidth))
}

// Result prints a message about a result and, if JSON was requested, the result itself.
func (p *Printer) Result(v any, format string, args ...any) error {
	p.Note(format, args...)
	if !p.JSON {
		return nil
	}
	return p.PrintJSON(v)
}

// Column is a column of a list of Ts. It has either a Text or a Time.
type Column[T any] struct {
	Title  string
	Text   func(T) string
	Time   func(T) time.Time // the zero time is Never
	Never  string            // "never" if empty
	Colour func(T) Colour    // nil: none
	Shrink bool              // may be cut if the screen is too narrow
	// Drop is the order in which columns are left out on a narrow screen: the highest
	// first, 0 never. A pipe gets all columns.
	Drop int
	// Relative shows how long ago the time was.
	Relative bool
}

// cell is an entry of the column formatted for a person.
func (c *Column[T]) cell(entry T) Cell {
	var got Cell
	switch {
	case c.Time == nil:
		got.Text = Visible(c.Text(entry))
	case c.Relative:
		if got.Text = c.never(); !c.Time(entry).IsZero() {
			got.Text = relativeTime(c.Time(entry), time.Now())
		}
	default:
		got.Text = DateTime(c.Time(entry))
	}
	if c.Colour != nil {
		got.Colour = c.Colour(entry)
	}
	return got
}

// plain is an entry of the column formatted for a program.
func (c *Column[T]) plain(entry T) string {
	if c.Time == nil {
		return Visible(c.Text(entry))
	}
	if t := c.Time(entry); !t.IsZero() {
		return t.UTC().Format("2006-01-02T15:04:05.000Z")
	}
	return c.never()
}

func (c *Column[T]) never() string { return cmp.Or(c.Never, never) }

// block is the number of rows that are aligned and flushed together.
const block = 100

// PrintList prints entries until the first error, which it returns. It prints the
// entries before the error.
func PrintList[T any](p *Printer, entries iter.Seq2[T, error], columns []Column[T]) error {
	w := bufio.NewWriter(p.Out)
	var err error
	switch {
	case p.JSON:
		err = writeArray(w, entries)
	case p.Screen.Terminal:
		err = writeTable(w, p.Screen, entries, columns)
	default:
		err = writeLines(w, entries, columns)
	}
	return errors.Join(err, w.Flush())
}

// PrintItem prints one item like a list of one, or as a JSON object.
func PrintItem[T any](p *Printer, item T, columns []Column[T]) error {
	if p.JSON {
		return p.PrintJSON(item)
	}
	return PrintList(p, func(yield func(T, error) bool) { yield(item, nil) }, columns)
}

// inBlocks calls write for each entry and flush after each block, so that entries are
// printed before the rest is fetched.
func inBlocks[T any](entries iter.Seq2[T, error], write func(T) error, flush func() error) error {
	rows := 0
	for entry, err := range entries {
		if err == nil {
			err = write(entry)
		}
		if err != nil {
			return err
		}
		if rows++; rows%block == 0 {
			if err := flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

func writeTable[T any](w *bufio.Writer, s Screen, entries iter.Seq2[T, error], columns []Column[T]) error {
	t := Table{w: w, screen: s, shrink: -1}
	header := make([]Cell, len(columns))
	for i, c := range columns {
		header[i] = Cell{c.Title, Faint}
		if c.Shrink {
			t.shrink = i
		}
		t.drop = append(t.drop, c.Drop)
	}
	err := inBlocks(entries, func(entry T) error {
		if t.widths == nil {
			t.Add(header...)
		}
		row := make([]Cell, len(columns))
		for i, c := range columns {
			row[i] = c.cell(entry)
		}
		t.Add(row...)
		return nil
	}, func() error { return errors.Join(t.Flush(), w.Flush()) })
	return errors.Join(err, t.Flush())
}

func writeLines[T any](w *bufio.Writer, entries iter.Seq2[T, error], columns []Column[T]) error {
	texts := make([]string, len(columns))
	return inBlocks(entries, func(entry T) error {
		for i, c := range columns {
			texts[i] = c.plain(entry)
		}
		_, err := fmt.Fprintln(w, strings.Join(texts, "\t"))
		return err
	}, w.Flush)
}

// writeArray leaves the array open after an error, so that a partial list isn't
// mistaken for the whole.
func writeArray[T any](w *bufio.Writer, entries iter.Seq2[T, error]) error {
	separator, end := "[\n  ", "[]\n"
	err := inBlocks(entries, func(entry T) error {
		text, err := encodeJSON(entry, "  ")
		if err != nil {
			return err
		}
		w.WriteString(separator)
		_, err = w.Write(text)
		separator, end = ",\n  ", "\n]\n"
		return err
	}, w.Flush)
	if err == nil {
		_, err = w.WriteString(end)
	}
	return err
}

// PrintJSON prints a value as the API would encode it, with indentation.
func (p *Printer) PrintJSON(v any) error {
	text, err := encodeJSON(v, "")
	if err != nil {
		return err
	}
	_, err = p.Out.Write(append(text, '\n'))
	return err
}

func encodeJSON(v any, prefix string) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent(prefix, "  ")
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return escapeJSON(bytes.TrimRight(b.Bytes(), "\n")), nil
}

// Field is one line of an item's details.
type Field struct {
	Name   string
	Value  string
	Colour Colour
}

// PrintFields prints one field per line: aligned on a terminal, or separated from its
// name by a tab in a pipe.
func (p *Printer) PrintFields(fields []Field) error {
	t := Table{w: p.Out, screen: p.Screen, shrink: -1}
	for _, f := range fields {
		if p.Screen.Terminal {
			t.Add(Cell{Text: f.Name}, Cell{Visible(f.Value), f.Colour})
		} else if _, err := fmt.Fprintf(p.Out, "%s\t%s\n", f.Name, Visible(f.Value)); err != nil {
			return err
		}
	}
	return t.Flush()
}
