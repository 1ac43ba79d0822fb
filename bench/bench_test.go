package main

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestFailedPart: what was measured is printed, even if something fails later.
func TestFailedPart(t *testing.T) {
	b := &bench{options: options{rounds: 2}, load: new(generator)}
	broken := errors.New("broken")
	var out strings.Builder
	err := b.report(&out, func(r *report) {
		r.results = append(r.results, result{work: "list 20", server: "ours", turns: inTurn(100, 200), ours: inTurn(100, 200)})
		r.costs = append(r.costs, cost{what: "memory", ours: []float64{64}})
		check(broken)
	})
	if !errors.Is(err, broken) || !strings.Contains(out.String(), "list 20") || !strings.Contains(out.String(), "memory") {
		t.Errorf("got %v and this output, want the error and both results:\n%s", err, &out)
	}
}

func TestParseDone(t *testing.T) {
	if got, err := parseDone("done 1000 500000 0 0"); err != nil || got.perSecond() != 2000 {
		t.Errorf("got %v a second, %v, want 2000", got.perSecond(), err)
	}
	for name, line := range map[string]string{
		"errors": "done 1000 500000 3 0", "socket errors": "done 1000 500000 0 2",
		"no responses": "done 0 500000 0 0", "no summary": "ready",
	} {
		if got, err := parseDone(line); err == nil {
			t.Errorf("%s: got %+v, want an error", name, got)
		}
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

func TestParseStat(t *testing.T) {
	got := parseStat("42 (a) b) S 7 42 42 0 -1 4194560 1 2 3 4 100 20 3 1 20 0 1 0 123 456 78")
	if want := (procStat{7, 1240 * time.Millisecond}); got != want {
		t.Errorf("parseStat: got %+v, want %+v", got, want)
	}
	if err := attempt(func() { parseStat("42 (a) S 7") }); err == nil {
		t.Error("parseStat of too few fields: got no error")
	}
}

func TestParseMemory(t *testing.T) {
	if got := parseMemory("Name:\tx\nVmHWM:\t   20480 kB\nVmRSS:\t   10240 kB\n", "VmHWM"); got != 20 {
		t.Errorf("parseMemory: got %v MiB, want 20", got)
	}
	if err := attempt(func() { parseMemory("Name:\tx\n", "VmHWM") }); err == nil {
		t.Error("parseMemory of a kernel thread: got no error")
	}
}
