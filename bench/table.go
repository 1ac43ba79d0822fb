package main

import (
	"fmt"
	"io"
	"slices"
	"text/tabwriter"
	"time"
)

// table gathers the outcome of a run.
type table struct {
	head   string
	rows   []string
	notes  []string
	missed bool
}

func (t *table) note(format string, args ...any) {
	t.notes = append(t.notes, fmt.Sprintf(format, args...))
}

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
		missed, text = v < b.atLeast, fmt.Sprintf("≥ %.2f%s", b.atLeast, unit)
	case b.atMost != 0:
		missed, text = v > b.atMost, fmt.Sprintf("≤ %.2f%s", b.atMost, unit)
	default:
		return "\t"
	}
	if missed {
		t.missed = true
		return text + "\tmiss"
	}
	return text + "\tpass"
}

func (t *table) print(w io.Writer) error {
	tw := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(tw, t.head)
	for _, row := range t.rows {
		fmt.Fprintln(tw, row)
	}
	return tw.Flush()
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

func total(turns []turn) turn {
	var sum turn
	for _, t := range turns {
		sum = sum.plus(t)
	}
	return sum
}
