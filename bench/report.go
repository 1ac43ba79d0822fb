package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"time"
)

// outcome is how a contestant did under a load, beside ours.
type outcome struct {
	work        string
	connections int
	name        string
	turns, ours []turn
	bar         bar // for the throughput of ours as a multiple of its own
}

// times is the throughput of ours as a multiple of the contestant's, round by
// round.
func (o outcome) times() []float64 { return ratios(o.ours, o.turns, turn.perSecond) }

// isOurs reports whether it is what the others are compared with.
func (o outcome) isOurs() bool { return &o.turns[0] == &o.ours[0] }

// middle is the median of a figure over the rounds.
func (o outcome) middle(of func(turn) float64) float64 {
	values := make([]float64, len(o.turns))
	for i, t := range o.turns {
		values[i] = of(t)
	}
	return median(values)
}

// size is how large something is, in MiB.
type size struct {
	what string
	mib  float64
	bar  bar
}

// report is what a run found out.
type report struct {
	options
	when        time.Time
	entrants    []*entrant
	skipped     []string
	foreign     float64 // the share of the machine that others took
	outcomes    []outcome
	connections []outcome
	sizes       []size
	growth      []*table
}

func (r *report) addSize(what string, mib float64, bar bar) {
	r.sizes = append(r.sizes, size{what, mib, bar})
}

// tables are the report for people. The first holds everything that has a bar.
func (r *report) tables() []*table {
	tables := []*table{
		r.bars(),
		outcomeTable("Every contestant", r.outcomes),
		outcomeTable("From 1 to 1,000 connections", r.connections),
		sizeTable(r.sizes),
	}
	shown := tables[:1]
	for _, t := range append(tables[1:], r.growth...) {
		if len(t.rows) > 0 {
			shown = append(shown, t)
		}
	}
	return shown
}

func (r *report) bars() *table {
	t := &table{title: "Bars", head: "work\tconnections\tbeside\tours is\tbar\t"}
	for _, o := range r.outcomes {
		if o.bar != (bar{}) {
			t.add(o.work, strconv.Itoa(o.connections), o.name, multiple(o.times()), t.verdict(o.bar, median(o.times()), ""))
		}
	}
	for _, s := range r.sizes {
		if s.bar != (bar{}) {
			t.add(s.what, "", "", fmt.Sprintf("%.1f MiB", s.mib), t.verdict(s.bar, s.mib, " MiB"))
		}
	}
	for _, g := range r.growth {
		for _, row := range g.rows {
			cells := strings.Split(row, "\t")
			what, many, ratio, verdict := cells[0], cells[2], cells[3], cells[4:]
			load, beside, value := strconv.Itoa(connections), grouped(fewAnimals)+" animals", "× "+ratio
			if ratio == "" { // a start, which has no load and nothing beside it
				load, beside, value = "", "", many
			}
			t.add(grouped(manyAnimals)+" animals: "+what, load, beside, value, strings.Join(verdict, "\t"))
		}
	}
	return t
}

func outcomeTable(title string, outcomes []outcome) *table {
	t := &table{title: title, head: "work\tconnections\tcontestant\trequests/s\tp50 ms\tp99 ms\tCPU µs a request\tours is"}
	for _, o := range outcomes {
		times := ""
		if !o.isOurs() {
			times = multiple(o.times())
		}
		t.add(o.work, strconv.Itoa(o.connections), o.name, fmt.Sprintf("%.0f", o.middle(turn.perSecond)),
			fmt.Sprintf("%.2f", o.middle(turn.p50Millis)), fmt.Sprintf("%.2f", o.middle(turn.p99Millis)),
			fmt.Sprintf("%.1f", o.middle(turn.cpuMicros)), times)
	}
	return t
}

func sizeTable(sizes []size) *table {
	t := &table{title: "Sizes", head: "what\tMiB\tbar\t"}
	for _, s := range sizes {
		t.add(s.what, fmt.Sprintf("%.1f", s.mib), t.verdict(s.bar, s.mib, ""))
	}
	return t
}

const (
	resultsBegin = "<!-- results: written by make bench, from here -->"
	resultsEnd   = "<!-- results: to here -->"
)

// write keeps the report in the source tree: all of it in bench/results, and
// its first table in docs/performance.md. A run that left something out is not
// worth that, unless it was asked for by naming a directory.
func (r *report) write(root string, tables []*table) error {
	dir := r.results
	if dir == "" {
		if !r.complete() {
			say("not a complete run: nothing is written to bench/results (-results DIR writes it elsewhere)")
			return nil
		}
		dir = filepath.Join(root, "bench", "results")
		if err := r.writeInto(filepath.Join(root, "docs", "performance.md"), tables[0]); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	for name, text := range map[string][]byte{"results.md": r.markdown(tables), "results.svg": plot(r.outcomes)} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
		say("wrote %s", filepath.Join(dir, name))
	}
	return nil
}

// complete reports whether everything was asked for.
func (r *report) complete() bool {
	return len(r.contestants) == len(contestantNames()) && len(r.workloads) == len(partNames()) && r.rounds >= 7
}

func (r *report) markdown(tables []*table) []byte {
	var out bytes.Buffer
	fmt.Fprintf(&out, "# Results\n\nWritten by `make bench`. [docs/performance.md](../../docs/performance.md) says how to\nread them.\n\n%s\n", r.circumstances(tables))
	fmt.Fprintf(&out, "\n![Requests a second of each contestant](results.svg)\n")
	for _, t := range tables {
		fmt.Fprintf(&out, "\n## %s\n\n", t.title)
		t.markdown(&out)
	}
	fmt.Fprintf(&out, "\n## Contestants\n\n")
	for _, e := range r.entrants {
		fmt.Fprintf(&out, "- **%s**: %s\n", e.name, e.about)
	}
	for _, line := range r.skipped {
		fmt.Fprintf(&out, "- %s\n", line)
	}
	return out.Bytes()
}

// tooBusy is a share of the machine that others may take before ratios say more
// about how programs fare under contention than about their speed.
const tooBusy = 0.10

// circumstances say under which conditions the figures came about.
func (r *report) circumstances(tables []*table) string {
	text := fmt.Sprintf("%s, %d cores, %s. Medians of %d rounds of %v, lowest and highest round in\nbrackets. %s.",
		r.when.UTC().Format("2 January 2006"), runtime.NumCPU(), runtime.Version(), r.rounds, r.burst, strings.Join(tables[0].notes, ".\n"))
	if r.foreign > tooBusy {
		text += "\n\n**The machine was too busy with other work for these figures to count.**"
	}
	return text
}

// writeInto replaces the results in a document.
func (r *report) writeInto(path string, bars *table) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var body bytes.Buffer
	fmt.Fprintf(&body, "\n%s\n\n", r.circumstances([]*table{bars}))
	bars.markdown(&body)
	for _, line := range r.skipped {
		fmt.Fprintf(&body, "\n%s.\n", line)
	}
	fmt.Fprintln(&body)
	changed, err := replaceBetween(text, resultsBegin, resultsEnd, body.Bytes())
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return os.WriteFile(path, changed, 0o644)
}

func replaceBetween(text []byte, begin, end string, body []byte) ([]byte, error) {
	before, rest, ok := bytes.Cut(text, []byte(begin+"\n"))
	_, after, ok2 := bytes.Cut(rest, []byte(end))
	if !ok || !ok2 {
		return nil, fmt.Errorf("it has no place for results: no %q followed by %q", begin, end)
	}
	return bytes.Join([][]byte{before, []byte(begin + "\n"), body, []byte(end), after}, nil), nil
}
