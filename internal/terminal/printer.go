package terminal

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"time"
)

// Printer prints the results of a command: a table on a terminal, tab-separated lines
// in a pipe, or JSON if requested.
type Printer struct {
	Out         io.Writer
	Screen      Screen // the screen of Out
	JSON        bool
	KeepColumns bool // print all columns, even on a narrow screen

	Notes io.Writer // messages that aren't results: standard error
}

// NewPrinter returns a printer for a command's standard output and error.
func NewPrinter(out, notes io.Writer) *Printer {
	return &Printer{Out: out, Screen: ScreenOf(out), Notes: notes}
}

// Note prints a message next to the results.
func (p *Printer) Note(format string, args ...any) {
	fmt.Fprintf(p.Notes, format+"\n", args...)
}

// Result prints a message about a result and, if JSON was requested, the result itself.
func (p *Printer) Result(v any, format string, args ...any) error {
	p.Note(format, args...)
	if !p.JSON {
		return nil
	}
	return p.PrintJSON(v)
}

// PrintJSON prints a value as the API would encode it, with indentation.
func (p *Printer) PrintJSON(v any) error {
	text, err := encodeJSON(v, "")
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(p.Out, "%s\n", text)
	return err
}

func encodeJSON(v any, prefix string) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent(prefix, "  ")
	err := enc.Encode(v)
	return escapeJSON(bytes.TrimRight(b.Bytes(), "\n")), err
}

// Column is a column of a list of Ts. It has either a Text or a Time. The least important
// columns come last, because a narrow screen leaves them out.
type Column[T any] struct {
	Title    string
	Text     func(T) string
	Time     func(T) time.Time // the zero time is Never
	Never    string            // "never" if empty
	Relative bool              // on a terminal, show how long ago the time was
	Colour   func(T) Colour    // nil: none
}

func (c *Column[T]) cell(entry T, onTerminal bool) cell {
	var made cell
	switch {
	case c.Time == nil:
		made.text = Visible(c.Text(entry))
	case c.Time(entry).IsZero():
		made.text = cmp.Or(c.Never, never)
	case !onTerminal:
		made.text = c.Time(entry).UTC().Format("2006-01-02T15:04:05.000Z")
	case c.Relative:
		made.text = relativeTime(c.Time(entry), time.Now())
	default:
		made.text = DateTime(c.Time(entry))
	}
	if c.Colour != nil {
		made.colour = c.Colour(entry)
	}
	return made
}

// block is the number of rows that are aligned and printed together, before the rest is
// fetched.
const block = 100

// PrintList prints entries until the first error, which it returns. It prints the
// entries before the error.
func PrintList[T any](p *Printer, entries iter.Seq2[T, error], columns []Column[T]) error {
	if p.JSON {
		return printArray(p.Out, entries)
	}
	t := table{screen: p.Screen, keepColumns: p.KeepColumns}
	var failed error
	for entry, err := range entries {
		if err != nil {
			failed = err
			break
		}
		header, row := make([]cell, len(columns)), make([]cell, len(columns))
		for i, c := range columns {
			header[i], row[i] = cell{c.Title, Faint}, c.cell(entry, p.Screen.Terminal)
		}
		if t.widths == nil && p.Screen.Terminal {
			t.add(header)
		}
		if t.add(row); len(t.rows) >= block {
			if err := t.flush(p.Out); err != nil {
				return err
			}
		}
	}
	return errors.Join(failed, t.flush(p.Out))
}

// printArray leaves the array open after an error, so that a partial list isn't
// mistaken for the whole.
func printArray[T any](w io.Writer, entries iter.Seq2[T, error]) error {
	separator, end := "[\n  ", "[]\n"
	for entry, err := range entries {
		if err != nil {
			return err
		}
		text, err := encodeJSON(entry, "  ")
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s%s", separator, text); err != nil {
			return err
		}
		separator, end = ",\n  ", "\n]\n"
	}
	_, err := io.WriteString(w, end)
	return err
}

// PrintItem prints one item like a list of one, or as a JSON object.
func PrintItem[T any](p *Printer, item T, columns []Column[T]) error {
	if p.JSON {
		return p.PrintJSON(item)
	}
	return PrintList(p, func(yield func(T, error) bool) { yield(item, nil) }, columns)
}

// Field is one line of an item's details.
type Field struct {
	Name   string
	Value  string
	Colour Colour
}

// PrintFields prints one field per line, next to its name.
func (p *Printer) PrintFields(fields []Field) error {
	t := table{screen: p.Screen}
	t.screen.Width = 0 // a long value is wrapped, not cut
	for _, f := range fields {
		t.add([]cell{{text: f.Name}, {Visible(f.Value), f.Colour}})
	}
	return t.flush(p.Out)
}
