package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strings"
	"time"

	"animalstore"

	"github.com/spf13/cobra"
)

// printer prints what a command found out, for whoever reads it: a table for a
// person at a terminal, a line of fields with tabs between for the next program
// in a pipe, JSON for those who ask for it.
type printer struct {
	out    io.Writer
	screen screen // that out is
	json   bool

	notes     io.Writer // what is no result: standard error
	noteWidth int       // of its screen
}

func newPrinter(cmd *cobra.Command, asJSON bool) *printer {
	out, notes := cmd.OutOrStdout(), cmd.ErrOrStderr()
	return &printer{out: out, screen: screenOf(out), json: asJSON, notes: notes, noteWidth: screenOf(notes).width}
}

// jsonFlag adds --json to a command.
func jsonFlag(cmd *cobra.Command) *bool {
	return cmd.Flags().Bool("json", false, "print JSON")
}

// note tells something beside the result.
func (p *printer) note(format string, args ...any) {
	fmt.Fprintln(p.notes, wrapped(fmt.Sprintf(format, args...), p.noteWidth))
}

// column is a column of a list of Ts. It has either a text or a time.
type column[T any] struct {
	title  string
	text   func(T) string
	time   func(T) animalstore.Time
	colour func(T) colour // nil: none
	shrink bool           // may be cut where the screen is too narrow
	// pipeOnly is a column that a screen has no room for.
	pipeOnly bool
	// relative times are shown to a person as how long ago they were.
	relative bool
}

// onScreen is an entry of the column as a person reads it.
func (c *column[T]) onScreen(entry T) cell {
	var got cell
	switch {
	case c.time == nil:
		got.text = visible(c.text(entry))
	case c.relative:
		got.text = relative(c.time(entry), time.Now())
	default:
		got.text = when(c.time(entry))
	}
	if c.colour != nil {
		got.colour = c.colour(entry)
	}
	return got
}

// inPipe is an entry of the column as a program reads it.
func (c *column[T]) inPipe(entry T) string {
	if c.time == nil {
		return visible(c.text(entry))
	}
	if t := c.time(entry); !t.IsZero() {
		return t.String()
	}
	return never
}

const never = "never"

// when is a time as a person reads it, in UTC.
func when(t animalstore.Time) string {
	if t.IsZero() {
		return never
	}
	return t.UTC().Format(time.DateTime)
}

// relative is a time as how far it is from now, in its largest unit.
func relative(t animalstore.Time, now time.Time) string {
	if t.IsZero() {
		return never
	}
	d := t.Sub(now)
	text := ""
	switch far := d.Abs(); {
	case far < time.Minute:
		text = fmt.Sprintf("%d s", far/time.Second)
	case far < time.Hour:
		text = fmt.Sprintf("%d min", far/time.Minute)
	case far < 48*time.Hour:
		text = fmt.Sprintf("%d h", far/time.Hour)
	default:
		text = fmt.Sprintf("%d d", far/(24*time.Hour))
	}
	if d > 0 {
		return "in " + text
	}
	return text + " ago"
}

// listFlags say how much of a list to print.
type listFlags struct {
	limit int
	all   bool
	json  *bool
}

// register adds the flags. Unless it is told otherwise, a command prints usual
// entries, or all if that is 0.
func (f *listFlags) register(cmd *cobra.Command, usual int) {
	flags := cmd.Flags()
	usage := "print so many at most"
	if usual == 0 {
		usage += " (default all)"
	}
	flags.IntVar(&f.limit, "limit", usual, usage)
	flags.BoolVar(&f.all, "all", false, "print all there are")
	f.json = jsonFlag(cmd)
}

func (f *listFlags) check(cmd *cobra.Command) error {
	switch {
	case f.limit == 0 && !cmd.Flag("limit").Changed:
		f.all = true
	case f.limit < 1:
		return usageError{fmt.Errorf("--limit must be at least 1, not %d", f.limit)}
	case f.all && given(cmd, "all") && given(cmd, "limit"):
		return usageError{errors.New("--limit and --all exclude each other: give one of them")}
	case given(cmd, "limit"):
		f.all = false // which the environment may have set
	}
	return nil
}

// maxPage is the most that the server gives at a time, and the most rows that
// are held to align them.
const maxPage = 100

// printAll prints a list as far as the flags ask for it. entries is given the
// size of page to ask the server for. things is what they are called.
func printAll[T any](p *printer, f *listFlags, things string, columns []column[T], entries func(pageSize int) iter.Seq2[T, error]) error {
	hints := p.screen.terminal && !p.json
	// One entry more tells a person whether there are more, unless it would
	// cost a request.
	read := f.limit
	if hints && f.limit%maxPage != 0 {
		read++
	}
	pageSize := min(read, maxPage)
	if f.all {
		pageSize = maxPage
	}
	printed, more := 0, "may be"
	bounded := func(yield func(T, error) bool) {
		for entry, err := range entries(pageSize) {
			if !f.all && printed == f.limit {
				more = "are"
				return
			}
			if !yield(entry, err) {
				return
			}
			if printed++; !f.all && printed == read {
				return
			}
		}
		more = ""
	}
	err := printList(p, bounded, columns)
	switch {
	case err != nil || !hints:
	case printed == 0:
		p.note("No %s found.", things)
	case more != "":
		p.note("There %s more %s: use --limit N or --all.", more, things)
	}
	return err
}

// printList prints entries until the first error, which it returns. What came
// before that is printed.
func printList[T any](p *printer, entries iter.Seq2[T, error], columns []column[T]) error {
	w := bufio.NewWriter(p.out)
	var err error
	switch {
	case p.json:
		err = writeArray(w, entries)
	case p.screen.terminal:
		err = writeTable(w, p.screen, entries, columns)
	default:
		err = writeRows(w, entries, columns)
	}
	return errors.Join(err, w.Flush())
}

// printItem prints one thing like a list of one, or as a JSON object.
func printItem[T any](p *printer, item T, columns []column[T]) error {
	if p.json {
		return printJSON(p, item)
	}
	return printList(p, func(yield func(T, error) bool) { yield(item, nil) }, columns)
}

func writeTable[T any](w *bufio.Writer, s screen, entries iter.Seq2[T, error], columns []column[T]) error {
	t := table{w: w, screen: s, shrink: -1}
	columns = slices.DeleteFunc(slices.Clone(columns), func(c column[T]) bool { return c.pipeOnly })
	header := make([]cell, len(columns))
	for i, c := range columns {
		header[i] = cell{c.title, faint}
		if c.shrink {
			t.shrink = i
		}
	}
	rows := 0
	for entry, err := range entries {
		if err != nil {
			return errors.Join(err, t.flush())
		}
		if rows == 0 {
			t.add(header)
		}
		row := make([]cell, len(columns))
		for i, c := range columns {
			row[i] = c.onScreen(entry)
		}
		t.add(row)
		if rows++; rows%maxPage == 0 {
			if err := errors.Join(t.flush(), w.Flush()); err != nil {
				return err
			}
		}
	}
	return t.flush()
}

func writeRows[T any](w *bufio.Writer, entries iter.Seq2[T, error], columns []column[T]) error {
	texts := make([]string, len(columns))
	rows := 0
	for entry, err := range entries {
		if err != nil {
			return err
		}
		for i, c := range columns {
			texts[i] = c.inPipe(entry)
		}
		fmt.Fprintln(w, strings.Join(texts, "\t"))
		if rows++; rows%maxPage == 0 {
			if err := w.Flush(); err != nil {
				return err
			}
		}
	}
	return nil
}

// writeArray writes entries as they come. After an error the array stays open,
// so that nobody takes a part for the whole.
func writeArray[T any](w *bufio.Writer, entries iter.Seq2[T, error]) error {
	separator, end := "[\n  ", "[]\n"
	rows := 0
	for entry, err := range entries {
		if err != nil {
			return err
		}
		text, err := encodeJSON(entry, "  ")
		if err != nil {
			return err
		}
		w.WriteString(separator)
		w.Write(text)
		separator, end = ",\n  ", "\n]\n"
		if rows++; rows%maxPage == 0 {
			if err := w.Flush(); err != nil {
				return err
			}
		}
	}
	w.WriteString(end)
	return nil
}

// printJSON prints a value as the API would give it, with indentation.
func printJSON(p *printer, v any) error {
	text, err := encodeJSON(v, "")
	if err != nil {
		return err
	}
	_, err = p.out.Write(append(text, '\n'))
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
