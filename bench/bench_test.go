package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"animalstore/internal/testenv"
)

func TestParseDone(t *testing.T) {
	for _, c := range []struct{ name, line, wantErr string }{
		{"success", "done 1000 500000 0 0", ""},
		{"errors", "done 1000 500000 3 0", "3 of 1000 responses were errors"},
		{"socket errors", "done 1000 500000 0 2", "2 connections failed"},
		{"no responses", "done 0 500000 0 0", "there was no response"},
		{"no summary", "ready", "instead of a summary"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := parseDone(c.line)
			if c.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), c.wantErr) {
					t.Fatalf("parseDone(%q): got error %v, want %q", c.line, err, c.wantErr)
				}
				return
			}
			if err != nil || got.perSecond() != 2000 {
				t.Errorf("parseDone(%q) = %v a second, %v; want 2000", c.line, got.perSecond(), err)
			}
		})
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   float64
	}{
		{[]float64{3}, 3},
		{[]float64{9, 1, 5}, 5},
		{[]float64{4, 1, 3, 2}, 2.5},
	} {
		if got := median(c.values); got != c.want {
			t.Errorf("median(%v) = %v, want %v", c.values, got, c.want)
		}
	}
}

func TestVerdict(t *testing.T) {
	for _, c := range []struct {
		bar    bar
		value  float64
		missed bool
	}{
		{bar{}, 0.1, false},
		{bar{atLeast: 0.5}, 0.5, false},
		{bar{atLeast: 0.5}, 0.49, true},
		{bar{atMost: 1.2}, 1.2, false},
		{bar{atMost: 1.2}, 1.21, true},
	} {
		var got table
		if got.addJudged(c.bar, c.value, "list"); got.missed != c.missed {
			t.Errorf("addJudged(%+v, %v): missed is %v, want %v", c.bar, c.value, got.missed, c.missed)
		}
	}
}

func TestDiffers(t *testing.T) {
	respond := func(body string, fields ...string) *response {
		header := http.Header{}
		for i := 0; i < len(fields); i += 2 {
			header.Add(fields[i], fields[i+1])
		}
		return &response{Status: 200, Body: []byte(body), Header: header}
	}
	a := respond("[]", "Content-Length", "2", "Date", "then", "X-Request-Id", "1")
	for _, c := range []struct {
		name string
		b    *response
		want bool
	}{
		{"another time", respond("[]", "Content-Length", "2", "Date", "now", "X-Request-Id", "2"), false},
		{"another body", respond("{}", "Content-Length", "2"), true},
		{"an additional field", respond("[]", "Content-Length", "2", "Link", "x"), true},
		{"another value", respond("[]", "Content-Length", "3"), true},
		{"another status", &response{Status: 201, Body: a.Body, Header: a.Header}, true},
	} {
		if got := a.differs(c.b); got != c.want {
			t.Errorf("%s: differs is %v, want %v", c.name, got, c.want)
		}
	}
}

// inTurn returns turns of a second with the given numbers of requests.
func inTurn(requests ...int) (turns []turn) {
	for _, n := range requests {
		turns = append(turns, turn{requests: n, seconds: 1, cpu: time.Second})
	}
	return turns
}

// Ratios are computed within rounds: the ratio of medians would be 1 here, where the
// machine was slow for one server's turn and then for the other's.
func TestRatiosAreOfRounds(t *testing.T) {
	ours, other := inTurn(100, 200, 400), inTurn(50, 400, 200)
	got := ratios(figures(ours, turn.perSecond), figures(other, turn.perSecond))
	if want := []float64{2, 0.5, 2}; !slices.Equal(got, want) || median(got) != 2 {
		t.Errorf("ratios: got %v with the median %v, want %v and 2", got, median(got), want)
	}
}

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   string
	}{
		{[]float64{0.9154}, "0.915"},
		{[]float64{1.234, 0.5, 99.96}, "1.23 (0.500–100.0)"},
	} {
		if got := spread(c.values); got != c.want {
			t.Errorf("spread(%v): got %q, want %q", c.values, got, c.want)
		}
	}
}

func TestGrouped(t *testing.T) {
	for n, want := range map[int]string{7: "7", 999: "999", 1000: "1,000", 5_000_000: "5,000,000", 123456: "123,456"} {
		if got := grouped(n); got != want {
			t.Errorf("grouped(%d): got %q, want %q", n, got, want)
		}
	}
}

// exampleReport has every kind of row, met and missed.
func exampleReport() *report {
	ours := inTurn(1000, 1100, 900)
	bare := inTurn(1250, 1375, 1125) // ours is 0.8 of it
	return &report{
		bench:   &bench{options: options{rounds: 3, burst: time.Second}, load: &generator{}},
		running: []*server{{name: "ours", about: "as released"}},
		skipped: []string{"fastify is left out: install node"},
		results: []result{
			{"list", 32, "ours", ours, ours, bar{}},
			{"list", 32, "bare", bare, ours, bar{atLeast: 0.92}},
			{"list", 32, "axum", inTurn(10_000, 11_000, 9000), ours, bar{}},
			{"get <20 & more>", 16, "ours", ours, ours, bar{}},
			{"get <20 & more>", 16, "bare", bare, ours, bar{atLeast: 0.75}},
		},
		costs: []cost{
			{"memory", "", nil, []float64{130}, barFor("peers", "memory", "")},
			{"small reads: p99 ms", "ours", nil, []float64{20}, barFor("peers", fairnessWork, "")},
			{"one pet: CPU", "100,000 pets", []float64{1, 2}, []float64{2, 4}, barFor("growth", "one", "small")},
		},
	}
}

func TestReportShowsBars(t *testing.T) {
	tables := exampleReport().tables()
	want := [][]string{
		{"list", "32", "bare", "× 0.800 (0.800–0.800)", "≥ 0.92", "missed"},
		{"get <20 & more>", "16", "bare", "× 0.800 (0.800–0.800)", "≥ 0.75", "met"},
		{"memory", "", "", "130.0", "≤ 128", "missed"},
		{"small reads: p99 ms", "", "ours", "20.0", "≤ 150", "met"},
		{"one pet: CPU", "", "100,000 pets", "× 2.00 (2.00–2.00)", "≤ 1.25", "missed"},
	}
	if got := tables[0].rows; !reflect.DeepEqual(got, want) {
		t.Errorf("bars:\n got %q\nwant %q", got, want)
	}
	if !tables[0].missed {
		t.Error("a table with missed bars isn't marked: -strict would pass")
	}
	if got, want := tables[1].rows[1], []string{"list", "32", "bare", "1250", "800.0", "× 0.800 (0.800–0.800)", "× 1.25"}; !slices.Equal(got, want) {
		t.Errorf("a server's row:\n got %q\nwant %q", got, want)
	}
	var titles []string
	for _, table := range tables {
		titles = append(titles, table.title)
	}
	if want := []string{"Bars", "Every server", "Other figures"}; !slices.Equal(titles, want) {
		t.Errorf("tables: got %q, want %q", titles, want)
	}
}

// A bar with a misspelled name would never be looked up.
func TestBarsAreForSomething(t *testing.T) {
	works := append(workloadNames(), quickWork...)
	for _, w := range growthWorkloads {
		works = append(works, w.name)
	}
	servers := append(serverNames(), allCores, oneKey, "base", "small", "")
	for i, b := range bars {
		if _, known := commands[b.command]; !known || !slices.Contains(servers, b.versus) {
			t.Errorf("there is no %s, %s", b.command, b.versus)
		}
		for _, work := range strings.Fields(b.works) {
			if !slices.Contains(works, work) {
				t.Errorf("there is no %s", work)
			}
			if got := barFor(b.command, work, b.versus); got != b.bar || b.bar == (bar{}) {
				t.Errorf("bars[%d], %s: got %v, want %v", i, work, got, b.bar)
			}
		}
	}
	for _, work := range quickWork {
		if got := barFor("quick", work, "base"); got.atLeast != 0.85 && work != fairnessWork && work != uploadsWork {
			t.Errorf("%s compared with base: got %v, want at least 0.85", work, got)
		}
	}
	if got := barFor("peers", "one", "axum"); got != (bar{}) {
		t.Errorf("a workload without a bar: got %v", got)
	}
}

func TestMarkdown(t *testing.T) {
	table := &table{head: []string{"work", "bar", ""}, rows: [][]string{{"list", "≥ 1", "missed"}, {"get", "", ""}}}
	var got bytes.Buffer
	table.markdown(&got)
	want := "| work | bar |  |\n| --- | --- | --- |\n| list | ≥ 1 | **missed** |\n| get |  |  |\n"
	if got.String() != want {
		t.Errorf("markdown:\n got %q\nwant %q", got.String(), want)
	}
}

func TestPlotIsWellFormed(t *testing.T) {
	plot := plot(exampleReport().results)
	texts := 0
	for d := xml.NewDecoder(bytes.NewReader(plot)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("not XML: %v\n%s", err, plot)
		}
		if e, ok := token.(xml.StartElement); ok && e.Name.Local == "text" {
			texts++
		}
	}
	if want := 2 + 2 + 2*5; texts != want { // head, workloads, a name and a figure for each server
		t.Errorf("got %d texts, want %d", texts, want)
	}
	for _, want := range []string{"1.25 · 1250/s", "1.00 · 1000/s", "→ 10.00 · 10000/s", "get &lt;20 &amp; more&gt;, 16 conn."} {
		if !bytes.Contains(plot, []byte(want)) {
			t.Errorf("the plot lacks %q", want)
		}
	}
}

// make bench replaces the results in the document and leaves the rest alone.
func TestResultsGoIntoTheDocument(t *testing.T) {
	text, err := os.ReadFile("../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "performance.md")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	r := exampleReport()
	for range 2 { // and again, in place of the first
		r.writeInto(path, r.tables()[0])
	}
	changed, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(changed), "| memory |"); n != 1 {
		t.Errorf("the document has %d rows of the results, want 1\n%s", n, changed)
	}
	before, _, _ := strings.Cut(string(text), resultsBegin)
	_, after, _ := strings.Cut(string(text), resultsEnd)
	if !strings.HasPrefix(string(changed), before) || !strings.HasSuffix(string(changed), after) {
		t.Errorf("something besides the results changed:\n%s", changed)
	}
	if err := os.WriteFile(path, []byte(resultsEnd+resultsBegin), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := attempt(func() { r.writeInto(path, r.tables()[0]) }); err == nil {
		t.Error("a document without a place for results: got no error")
	}
}

func TestParseStat(t *testing.T) {
	got := parseStat("42 (a) b) S 7 42 42 0 -1 4194560 1 2 3 4 100 20 3 1 20 0 1 0 123 456 78")
	if want := (procStat{7, 1240 * time.Millisecond}); got != want {
		t.Errorf("parseStat: got %+v, want %+v", got, want)
	}
	if err := attempt(func() { parseStat("42 (a) S 7") }); err == nil {
		t.Error("parseStat of too few fields: got no error")
	}
}

func TestParsePeak(t *testing.T) {
	if got := parsePeak("Name:\tx\nVmHWM:\t   20480 kB\nVmRSS:\t   10240 kB\n"); got != 20 {
		t.Errorf("parsePeak: got %v MiB, want 20", got)
	}
	if err := attempt(func() { parsePeak("Name:\tx\n") }); err == nil {
		t.Error("parsePeak of a kernel thread: got no error")
	}
}

// testBench is a run that ends with the test. It needs /proc.
func testBench(t *testing.T) *bench {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		testenv.Missing(t, "needs /proc: %v", err)
	}
	b := &bench{ctx: t.Context(), options: options{dir: t.TempDir()}}
	b.open()
	t.Cleanup(b.close)
	return b
}

// A server may consist of several processes: all of them count.
func TestFamily(t *testing.T) {
	p := testBench(t).launch("family", os.Interrupt, nil, "sh", "-c", "trap 'kill $!; exit' INT; sleep 300 & wait")
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		members := family(p.cmd.Process.Pid)
		if len(members) == 2 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("a shell and its child: got %d processes, want 2", len(members))
		}
	}
}
