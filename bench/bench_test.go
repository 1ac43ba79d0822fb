package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestParseDone(t *testing.T) {
	for _, c := range []struct{ name, line, wantErr string }{
		{"success", "done 1000 500000 0 0 250 1999", ""},
		{"refusals", "done 1000 500000 3 0 250 1999", "3 of 1000 answers were refusals"},
		{"socket errors", "done 1000 500000 0 2 250 1999", "2 connections failed"},
		{"no answers", "done 0 500000 0 0 0 0", "nothing was answered"},
		{"no percentiles", "done 1000 500000 0 0", "instead of a summary"},
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
			if err != nil || got.perSecond() != 2000 || got.p50Millis() != 0.25 || got.p99Millis() != 1.999 {
				t.Errorf("parseDone(%q) = %v a second, p50 %v ms, p99 %v ms, %v; want 2000, 0.25, 1.999",
					c.line, got.perSecond(), got.p50Millis(), got.p99Millis(), err)
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
		if got.verdict(c.bar, c.value, ""); got.missed != c.missed {
			t.Errorf("verdict(%+v, %v): missed is %v, want %v", c.bar, c.value, got.missed, c.missed)
		}
	}
}

func TestSame(t *testing.T) {
	answered := func(body string, fields ...[2]string) *answer {
		return &answer{Status: 200, Body: body, Fields: fields}
	}
	a := answered("[]", [2]string{"Content-Length", "2"}, [2]string{"Date", "then"}, [2]string{"X-Request-Id", "1"})
	for _, c := range []struct {
		name string
		b    *answer
		want bool
	}{
		{"another moment", answered("[]", [2]string{"Content-Length", "2"}, [2]string{"Date", "now"}, [2]string{"X-Request-Id", "2"}), true},
		{"another body", answered("{}", a.Fields...), false},
		{"a field more", answered("[]", append([][2]string{{"Link", "x"}}, a.Fields...)...), false},
		{"another spelling", answered("[]", [2]string{"content-length", "2"}), false},
	} {
		if got := a.same(c.b); got != c.want {
			t.Errorf("%s: same is %v, want %v", c.name, got, c.want)
		}
	}
}

// inTurn are turns of a second with so many requests each.
func inTurn(requests ...int) (turns []turn) {
	for _, n := range requests {
		turns = append(turns, turn{requests: n, seconds: 1, cpu: time.Second, p50: time.Millisecond, p99: 9 * time.Millisecond})
	}
	return turns
}

// Ratios are taken within rounds: the ratio of medians would be 1 here, where
// the machine slowed down for one contestant's turn and then for the other's.
func TestRatiosAreOfRounds(t *testing.T) {
	ours, other := inTurn(100, 200, 400), inTurn(50, 400, 200)
	got := ratios(ours, other, turn.perSecond)
	if want := []float64{2, 0.5, 2}; !slices.Equal(got, want) || median(got) != 2 {
		t.Errorf("ratios: got %v with the median %v, want %v and 2", got, median(got), want)
	}
}

func TestMultiple(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   string
	}{
		{[]float64{0.9154}, "× 0.915 (0.915–0.915)"},
		{[]float64{1.234, 0.5, 99.96}, "× 1.23 (0.500–100.0)"},
	} {
		if got := multiple(c.values); got != c.want {
			t.Errorf("multiple(%v): got %q, want %q", c.values, got, c.want)
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

// exampleReport is one with every kind of row, met and missed.
func exampleReport() *report {
	ours := inTurn(1000, 1100, 900)
	bare := inTurn(1250, 1375, 1125) // ours is 0.8 of it
	return &report{
		options:  options{rounds: 3, burst: time.Second},
		entrants: []*entrant{{server: &server{process: &process{name: "ours"}}, about: "as released"}},
		skipped:  []string{"fastify is left out: install node"},
		outcomes: []outcome{
			{"list", 32, "ours", ours, ours, bar{}},
			{"list", 32, "bare", bare, ours, bar{atLeast: 0.92}},
			{"list", 32, "axum", inTurn(10_000, 11_000, 9000), ours, bar{}},
			{"get <20 & more>", 16, "ours", ours, ours, bar{}},
			{"get <20 & more>", 16, "bare", bare, ours, bar{atLeast: 0.75}},
		},
		sizes:  []size{{"memory", 70, memoryBar}, {"the binary", 12, bar{}}},
		growth: []*table{{title: "Growth", head: "what\tfew\tmany\tratio\tmark\t", rows: []string{"get: CPU\t1\t2\t2.0\t≤ 1.15\tmissed", "start: ms\t\t20\t\t≤ 100\tmet"}, missed: true}},
	}
}

func TestReportShowsBars(t *testing.T) {
	tables := exampleReport().tables()
	want := []string{
		"list\t32\tbare\t× 0.800 (0.800–0.800)\t≥ 0.92\tmissed",
		"get <20 & more>\t16\tbare\t× 0.800 (0.800–0.800)\t≥ 0.75\tmet",
		"memory\t\t\t70.0 MiB\t≤ 64 MiB\tmissed",
		"5,000,000 animals: get: CPU\t32\t100,000 animals\t× 2.0\t≤ 1.15\tmissed",
		"5,000,000 animals: start: ms\t\t\t20\t≤ 100\tmet",
	}
	if got := tables[0].rows; !slices.Equal(got, want) {
		t.Errorf("bars:\n got %q\nwant %q", got, want)
	}
	if !tables[0].missed {
		t.Error("a table with missed bars does not say so: -strict would pass")
	}
	if got, want := tables[1].rows[1], "list\t32\tbare\t1250\t1.00\t9.00\t800.0\t× 0.800 (0.800–0.800)"; got != want {
		t.Errorf("a contestant's row:\n got %q\nwant %q", got, want)
	}
	var titles []string
	for _, table := range tables {
		titles = append(titles, table.title)
	}
	if want := []string{"Bars", "Every contestant", "Sizes", "Growth"}; !slices.Equal(titles, want) { // no connections were measured
		t.Errorf("tables: got %q, want %q", titles, want)
	}
}

func TestMarkdown(t *testing.T) {
	table := &table{head: "work\tbar\t", rows: []string{"list\t≥ 1\tmissed", "get\t\t", "create"}}
	var got bytes.Buffer
	table.markdown(&got)
	want := "| work | bar |  |\n| --- | --- | --- |\n| list | ≥ 1 | **missed** |\n| get |  |  |\n| create |  |  |\n"
	if got.String() != want {
		t.Errorf("markdown:\n got %q\nwant %q", got.String(), want)
	}
}

func TestPlotIsWellFormed(t *testing.T) {
	plot := plot(exampleReport().outcomes)
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
	if want := 2 + 2 + 2*5; texts != want { // head, loads, a name and a figure a contestant
		t.Errorf("got %d texts, want %d", texts, want)
	}
	for _, want := range []string{"1.25 · 1250/s", "1.00 · 1000/s", "→ 10.00 · 10000/s", "get &lt;20 &amp; more&gt;, 16 conn."} {
		if !bytes.Contains(plot, []byte(want)) {
			t.Errorf("the plot lacks %q", want)
		}
	}
}

// The document has a place that make bench writes to, and keeps the rest.
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
		if err := r.writeInto(path, r.tables()[0]); err != nil {
			t.Fatal(err)
		}
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
		t.Errorf("something beside the results changed:\n%s", changed)
	}
	if _, err := replaceBetween([]byte("no place"), resultsBegin, resultsEnd, nil); err == nil {
		t.Error("a document without a place for results was no error")
	}
}

func TestParseStat(t *testing.T) {
	got, err := parseStat([]byte("42 (a) b) S 7 42 42 0 -1 4194560 1 2 3 4 100 20 3 1 20 0 1 0 123 456 78"))
	if want := (procStat{7, 1240 * time.Millisecond}); err != nil || got != want {
		t.Errorf("parseStat: got %+v, %v; want %+v", got, err, want)
	}
	if _, err := parseStat([]byte("42 (a) S 7")); err == nil {
		t.Error("parseStat of too few fields: got no error")
	}
}

func TestParseMemory(t *testing.T) {
	rss, peak, err := parseMemory("Name:\tx\nVmHWM:\t   20480 kB\nVmRSS:\t   10240 kB\n")
	if err != nil || rss != 10 || peak != 20 {
		t.Errorf("parseMemory: got %v and %v MiB, %v; want 10 and 20", rss, peak, err)
	}
	if _, _, err := parseMemory("Name:\tx\n"); err == nil {
		t.Error("parseMemory of a kernel thread: got no error")
	}
}

// A server may be several processes: all of them count.
func TestFamily(t *testing.T) {
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("needs /proc: %v", err)
		}
		t.Skipf("needs /proc: %v", err)
	}
	p, err := launch(t.Context(), t.TempDir(), "family", os.Interrupt, []string{"sh", "-c", "trap 'kill $!; exit' INT; sleep 300 & wait"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.stop()
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		members, err := family(p.cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		if len(members) == 2 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("a shell and its child: got %d processes, want 2", len(members))
		}
	}
}

func TestMixKeepsShares(t *testing.T) {
	count := map[string]int{}
	for _, request := range mix(part{9, []string{"a"}}, part{1, []string{"b"}}) {
		count[request]++
	}
	if want := (map[string]int{"a": pool * 9 / 10, "b": pool / 10}); !reflect.DeepEqual(count, want) {
		t.Errorf("mix of 9 to 1: got %v, want %v", count, want)
	}
	for _, request := range ninetyTen(pocketBaseAPI, 1000) {
		if strings.HasPrefix(request, "POST") {
			count["POST"]++
		}
	}
	if got, want := count["POST"], pool/10; got != want {
		t.Errorf("creates in the mix: got %d of %d, want %d", got, pool, want)
	}
}

func TestListRequests(t *testing.T) {
	for _, c := range []struct {
		name string
		api  api
		page page
		want string
	}{
		{"ours, first", ourAPI, page{limit: 20}, "/v1/pets"},
		{"ours, status", ourAPI, page{limit: 100, status: rare}, "/v1/pets?limit=100&status=pending"},
		{"ours, cursor", ourAPI, page{below: 77, limit: 20}, cursorURI(77, "")},
		{"plain, cursor", plainAPI, page{below: 77, limit: 20}, "/v1/pets?limit=20&cursor=Nzc"},
		{"pocketbase, first", pocketBaseAPI, page{limit: 20}, "/api/collections/pets/records?perPage=20&skipTotal=1&sort=-created"},
		{"pocketbase, cursor", pocketBaseAPI, page{below: 1500, limit: 20},
			"/api/collections/pets/records?perPage=20&skipTotal=1&sort=-created&filter=created%3C%222025-01-01+00%3A00%3A01.500Z%22"},
	} {
		if got := c.api.list(c.page); got != c.want {
			t.Errorf("%s: got %s, want %s", c.name, got, c.want)
		}
	}
}

// Seeds are the same each time, or a kept store would not be what the requests
// ask for.
func TestAnimalsAreTheSameEachTime(t *testing.T) {
	first, second := slices.Collect(animals(1000)), slices.Collect(animals(1000))
	if !slices.Equal(first, second) {
		t.Error("two seeds differ")
	}
	var text bytes.Buffer
	if err := writeAnimals(&text, 2, inWords); err != nil {
		t.Fatal(err)
	}
	want := ""
	for _, a := range first[:2] {
		want += strings.Join([]string{a.name, strconv.FormatInt(a.category, 10), string(a.status)}, "\t") + "\n"
	}
	if text.String() != want {
		t.Errorf("rows for others: got %q, want %q", text.String(), want)
	}
}

func TestCached(t *testing.T) {
	o := options{dir: t.TempDir()}
	failed := errors.New("no")
	fill := func(err error) func(string) error {
		return func(part string) error { return errors.Join(os.WriteFile(part, []byte("kept"), 0o600), err) }
	}
	if _, err := o.cached("thing", fill(failed)); !errors.Is(err, failed) {
		t.Fatalf("got %v, want %v", err, failed)
	}
	path, err := o.cached("thing", fill(nil))
	if err != nil {
		t.Fatalf("after a failure: %v", err)
	}
	again, err := o.cached("thing", fill(failed))
	if text, readErr := os.ReadFile(again); err != nil || again != path || string(text) != "kept" {
		t.Errorf("the second time: got %q in %s, %v, %v; want what was kept in %s", text, again, err, readErr, path)
	}
}
