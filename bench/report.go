package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ratios are our figure divided by the server's, round by round.
func (r result) ratios(of func(turn) float64) []float64 {
	return ratios(figures(r.ours, of), figures(r.turns, of))
}

// median is the median of a figure over the rounds.
func (r result) median(of func(turn) float64) float64 { return median(figures(r.turns, of)) }

// cost is a figure other than throughput, round by round, and optionally the figures it
// is compared with. The bar then applies to the ratio.
type cost struct {
	what, versus string
	other, ours  []float64
	bar          bar
}

// judged returns the values that the bar applies to.
func (c cost) judged() []float64 {
	if c.other == nil {
		return c.ours
	}
	return ratios(c.ours, c.other)
}

// report is the result of a run.
type report struct {
	*bench
	when    time.Time
	running []*server // ours first
	skipped []string  // servers that are left out, and why
	results []result
	costs   []cost
	primary *primary // of the command ceiling
}

// tables returns the report as tables. The first contains all rows with a bar.
func (r *report) tables() []*table {
	all := []*table{r.barsTable()}
	if r.primary != nil {
		all = append(all, r.primary.tables(r.instances)...)
	}
	all = append(all, resultTable(r.results), costTable(r.costs))
	return slices.DeleteFunc(all, func(t *table) bool { return len(t.rows) == 0 })
}

// print prints the tables, if there are any, and reports whether a bar was missed.
func (r *report) print(out io.Writer) (missed bool) {
	tables := r.tables()
	for _, t := range tables {
		t.print(out)
		missed = missed || t.missed
	}
	if len(tables) > 0 {
		fmt.Fprintf(out, "%s.\nMedians of %d rounds, lowest and highest round in brackets. Took %v.\n",
			strings.Join(r.notes(), ".\n"), r.rounds, time.Since(began).Round(time.Second))
	}
	return missed
}

func (r *report) barsTable() *table {
	t := &table{title: "Bars", head: []string{"work", "connections", "compared with", "ours is", "bar", "result"}}
	for _, o := range r.results {
		if times := o.ratios(turn.perSecond); o.bar != (bar{}) {
			t.addJudged(o.bar, median(times), o.work, strconv.Itoa(o.connections), o.server, "× "+spread(times))
		}
	}
	for _, c := range r.costs {
		value := spread(c.judged())
		if c.other != nil {
			value = "× " + value
		}
		if c.bar != (bar{}) {
			t.addJudged(c.bar, median(c.judged()), c.what, "", c.versus, value)
		}
	}
	return t
}

func resultTable(results []result) *table {
	t := &table{title: "Every server", head: []string{"work", "connections", "server", "requests/s", "CPU µs per request", "ours is", "our CPU is"}}
	for _, r := range results {
		times, cpu := "", ""
		if &r.turns[0] != &r.ours[0] {
			times = "× " + spread(r.ratios(turn.perSecond))
			cpu = fmt.Sprintf("× %.2f", median(r.ratios(turn.cpuMicros)))
		}
		used := fmt.Sprintf("%.1f", r.median(turn.cpuMicros))
		if len(r.turns[0].backends) > 0 {
			used += fmt.Sprintf(" (PostgreSQL %.1f, Redis %.1f)", r.median(backendMicros(0)), r.median(backendMicros(1)))
		}
		t.rows = append(t.rows, []string{r.work, strconv.Itoa(r.connections), r.server, fmt.Sprintf("%.0f", r.median(turn.perSecond)),
			used, times, cpu})
	}
	return t
}

func costTable(costs []cost) *table {
	t := &table{title: "Other figures", head: []string{"what", "compared with", "there", "here", "ratio", "bar", "result"}}
	for _, c := range costs {
		other, ours, ratio := "", spread(c.ours), ""
		if c.other != nil {
			other, ours, ratio = fmt.Sprintf("%.1f", median(c.other)), fmt.Sprintf("%.1f", median(c.ours)), spread(c.judged())
		}
		t.addJudged(c.bar, median(c.judged()), c.what, c.versus, other, ours, ratio)
	}
	return t
}

const (
	resultsBegin = "<!-- results: written by make bench, from here -->"
	resultsEnd   = "<!-- results: to here -->"
)

// write stores the report in the source tree: all of it in bench/results, and its first
// table in docs/performance.md. An incomplete run is only stored in a directory that
// was named for it.
func (r *report) write(tables []*table) {
	dir := r.options.results
	if dir == "" {
		if len(r.servers) < len(serverNames()) || len(r.workloads) < len(workloadNames()) || r.rounds < 7 {
			progress("not a complete run: nothing is written to bench/results (-results DIR writes it elsewhere)")
			return
		}
		dir = filepath.Join(r.root, "bench", "results")
		r.writeInto(filepath.Join(r.root, "docs", "performance.md"), tables[0])
	}
	check(os.MkdirAll(dir, 0o755))
	for name, text := range map[string][]byte{"results.md": r.markdown(tables), "results.svg": plot(r.results)} {
		check(os.WriteFile(filepath.Join(dir, name), text, 0o644))
		progress("wrote %s", filepath.Join(dir, name))
	}
}

func (r *report) markdown(tables []*table) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "# Results\n\nWritten by `make bench`. [docs/performance.md](../../docs/performance.md) explains how to\nread them.\n\n%s\n", r.conditions())
	fmt.Fprintf(&out, "\n![Requests per second of each server](results.svg)\n")
	for _, t := range tables {
		fmt.Fprintf(&out, "\n## %s\n\n", t.title)
		t.markdown(&out)
	}
	fmt.Fprintf(&out, "\n## Servers\n\n")
	for _, s := range r.running {
		fmt.Fprintf(&out, "- **%s**: %s\n", s.name, s.about)
	}
	for _, line := range r.skipped {
		fmt.Fprintf(&out, "- %s\n", line)
	}
	return out.Bytes()
}

// tooBusy is the share of the machine that other processes may use before ratios say
// more about contention than about speed.
const tooBusy = 0.10

// conditions describe how the figures were measured.
func (r *report) conditions() string {
	text := fmt.Sprintf("%s, %d cores, %s. Medians of %d rounds of %v, lowest and highest round in\nbrackets. %s.",
		r.when.UTC().Format("2 January 2006"), runtime.NumCPU(), runtime.Version(), r.rounds, r.burst, strings.Join(r.notes(), ".\n"))
	if r.load.foreignShare() > tooBusy {
		text += "\n\n**The machine was too busy with other work for these figures to count.**"
	}
	return text
}

// writeInto replaces the results in a document.
func (r *report) writeInto(path string, bars *table) {
	var body bytes.Buffer
	fmt.Fprintf(&body, "%s\n\n%s\n\n", resultsBegin, r.conditions())
	bars.markdown(&body)
	for _, line := range r.skipped {
		fmt.Fprintf(&body, "\n%s.\n", line)
	}
	fmt.Fprintf(&body, "\n%s", resultsEnd)
	before, rest, found := bytes.Cut(must(os.ReadFile(path)), []byte(resultsBegin))
	_, after, foundEnd := bytes.Cut(rest, []byte(resultsEnd))
	if !found || !foundEnd {
		check(fmt.Errorf("%s has no place for results: no %q followed by %q", path, resultsBegin, resultsEnd))
	}
	check(os.WriteFile(path, slices.Concat(before, body.Bytes(), after), 0o644))
}
