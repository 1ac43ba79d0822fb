package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// table gathers the outcome of a run. Cells are separated by tabs.
type table struct {
	title  string // where there are several
	head   string
	rows   []string
	notes  []string
	missed bool
}

func (t *table) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

func (t *table) add(cells ...string) { t.rows = append(t.rows, strings.Join(cells, "\t")) }

// bar is what a figure is held to. The zero bar holds it to nothing.
type bar struct {
	atLeast, atMost float64
}

// verdict says how v fares, in two columns.
func (t *table) verdict(b bar, v float64, unit string) string {
	var missed bool
	var text string
	switch {
	case b.atLeast != 0:
		missed, text = v < b.atLeast, fmt.Sprintf("≥ %g%s", b.atLeast, unit)
	case b.atMost != 0:
		missed, text = v > b.atMost, fmt.Sprintf("≤ %g%s", b.atMost, unit)
	default:
		return "\t"
	}
	if missed {
		t.missed = true
		return text + "\tmissed"
	}
	return text + "\tmet"
}

func (t *table) print(w io.Writer) error {
	if t.title != "" {
		fmt.Fprintf(w, "%s\n\n", t.title)
	}
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, t.head)
	for _, row := range t.rows {
		fmt.Fprintln(tw, row)
	}
	return tw.Flush()
}

// markdown writes the table as one of Markdown's. Cells of figures are aligned
// as they come: the source is read, too.
func (t *table) markdown(w io.Writer) {
	columns := strings.Count(t.head, "\t") + 1
	line := func(cells []string) {
		for len(cells) < columns {
			cells = append(cells, "")
		}
		fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
	}
	line(strings.Split(t.head, "\t"))
	line(slices.Repeat([]string{"---"}, columns))
	for _, row := range t.rows {
		cells := strings.Split(row, "\t")
		if cells[len(cells)-1] == "missed" {
			cells[len(cells)-1] = "**missed**"
		}
		line(cells)
	}
}

// ratios are those of two contestants, round by round.
func ratios(a, b []turn, of func(turn) float64) []float64 {
	all := make([]float64, len(a))
	for i := range a {
		all[i] = of(a[i]) / of(b[i])
	}
	return all
}

func median[N float64 | time.Duration](values []N) N {
	sorted := slices.Sorted(slices.Values(values))
	middle := len(sorted) / 2
	if len(sorted)%2 == 0 {
		return (sorted[middle-1] + sorted[middle]) / 2
	}
	return sorted[middle]
}

// spread shows the median and, in brackets, how far the rounds lie apart.
func spread(values []float64) string {
	return fmt.Sprintf("%.3f (%.2f–%.2f)", median(values), slices.Min(values), slices.Max(values))
}

// multiple is spread for ratios that may be small or large.
func multiple(values []float64) string {
	figures := func(v float64) string {
		switch {
		case v < 1:
			return fmt.Sprintf("%.3f", v)
		case v < 10:
			return fmt.Sprintf("%.2f", v)
		}
		return fmt.Sprintf("%.1f", v)
	}
	return fmt.Sprintf("× %s (%s–%s)", figures(median(values)), figures(slices.Min(values)), figures(slices.Max(values)))
}

// grouped is a count as people read it: 5,000,000.
func grouped(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

func total(turns []turn) turn {
	var sum turn
	for _, t := range turns {
		sum = sum.plus(t)
	}
	return sum
}
