package main

import (
	"strings"
	"testing"
)

func TestParseDone(t *testing.T) {
	for _, c := range []struct{ name, line, wantErr string }{
		{"success", "done 1000 500000 0 0", ""},
		{"refusals", "done 1000 500000 3 0", "3 of 1000 answers were refusals"},
		{"socket errors", "done 1000 500000 0 2", "2 connections failed"},
		{"no answers", "done 0 500000 0 0", "nothing was answered"},
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
