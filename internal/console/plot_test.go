package console

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"animalstore"
)

// TestPlot: the legend and the table have the figures of the period.
func TestPlot(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 15, 12, 30, 0, 0, time.UTC)
	c := &Console{Config: Config{Now: func() time.Time { return now }}}
	usage := func(hoursAgo int, admitted, refused int64) animalstore.Usage {
		return animalstore.Usage{Hour: animalstore.At(now.Truncate(time.Hour).Add(-time.Duration(hoursAgo) * time.Hour)), Admitted: admitted, Refused: refused}
	}
	all := []animalstore.Usage{usage(0, 30, 10), usage(5, 100, 0), usage(23, 7, 3), usage(24, 1000, 1000), usage(30*24, 5, 5)}
	for i, want := range []struct {
		totals string
		rows   string
		top    int64
	}{
		{"[137 13]", "12:00 30 10; 07:00 100 0; 13:00 7 3; ", 100},
		{"[1137 1013]", "15 Nov, 12:00 30 10; 15 Nov, 07:00 100 0; 14 Nov, 13:00 7 3; 14 Nov, 12:00 1000 1000; ", 2000},
		{"[1142 1018]", "15 Nov 130 10; 14 Nov 1007 1003; 16 Oct 5 5; ", 2400},
	} {
		p := c.plotUsage(all, periods[i])
		rows := ""
		for _, b := range p.Rows() {
			label := regexp.MustCompile(`<[^>]*>`).ReplaceAllString(string(p.Label(b)), "")
			rows += fmt.Sprintf("%s %d %d; ", label, b.Values[0], b.Values[1])
		}
		if got := fmt.Sprint(p.Totals()); got != want.totals || rows != want.rows || p.Top() != want.top {
			t.Errorf("%s: got totals %s, rows %q, top %d\nwant %+v", periods[i].Name, got, rows, p.Top(), want)
		}
		if n := strings.Count(string(p.SVG()), `class="grid"`); n != len(p.Ticks()) {
			t.Errorf("%s: got %d lines for %d labels", periods[i].Name, n, len(p.Ticks()))
		}
	}
}

// TestPlotAxis: the highest bar fits, takes more than half of the height, and all labels
// are whole numbers.
func TestPlotAxis(t *testing.T) {
	t.Parallel()
	for highest := int64(0); highest < 30_000; highest += 1 + highest/50 {
		p := plot{Series: []string{"a"}, Classes: []string{"a"}, Bars: []bar{{Values: []int64{highest}}}}
		if top := p.Top(); top < highest || top%4 != 0 || highest > 4 && top > 2*highest {
			t.Errorf("for %d the axis ends at %d", highest, top)
		}
	}
}
