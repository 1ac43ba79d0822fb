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

// table shows the results of a run.
type table struct {
	title  string
	head   []string
	rows   [][]string
	missed bool // a row says so
}

// addJudged adds a row that ends with a bar and whether v clears it.
func (t *table) addJudged(b bar, v float64, cells ...string) {
	text, verdict := "", ""
	switch {
	case b.atLeast > 0:
		text, verdict = fmt.Sprintf("≥ %.3g", b.atLeast), "met"
	case b.atMost > 0:
		text, verdict = fmt.Sprintf("≤ %.3g", b.atMost), "met"
	}
	if v < b.atLeast || b.atMost > 0 && v > b.atMost {
		verdict, t.missed = verdictMissed, true
	}
	t.rows = append(t.rows, append(cells, text, verdict))
}

const verdictMissed = "missed"

func (t *table) print(w io.Writer) {
	fmt.Fprintf(w, "\n%s\n\n", t.title)
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, cells := range slices.Concat([][]string{t.head}, t.rows) {
		fmt.Fprintln(tw, strings.Join(cells, "\t"))
	}
	fmt.Fprintln(tw)
	check(tw.Flush())
}

func (t *table) markdown(w io.Writer) {
	line := func(cells []string) { fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | ")) }
	line(t.head)
	line(slices.Repeat([]string{"---"}, len(t.head)))
	for _, row := range t.rows {
		cells := slices.Clone(row)
		if last := len(cells) - 1; cells[last] == verdictMissed {
			cells[last] = "**" + verdictMissed + "**"
		}
		line(cells)
	}
}

// figures are one figure of each turn.
func figures(turns []turn, of func(turn) float64) []float64 {
	all := make([]float64, len(turns))
	for i, t := range turns {
		all[i] = of(t)
	}
	return all
}

// ratios are the ratios of two series, round by round.
func ratios(a, b []float64) []float64 {
	all := make([]float64, len(a))
	for i := range a {
		all[i] = a[i] / b[i]
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

// spread shows the median and, in brackets, the lowest and highest of several
// values.
func spread(values []float64) string {
	digits := func(v float64) string {
		switch {
		case v < 1:
			return fmt.Sprintf("%.3f", v)
		case v < 10:
			return fmt.Sprintf("%.2f", v)
		}
		return fmt.Sprintf("%.1f", v)
	}
	if len(values) == 1 {
		return digits(values[0])
	}
	return fmt.Sprintf("%s (%s–%s)", digits(median(values)), digits(slices.Min(values)), digits(slices.Max(values)))
}

// grouped formats a count as people read it: 5,000,000.
func grouped(n int) string {
	digits := strconv.Itoa(n)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}
