package console

import (
	"html/template"
	"math"
	"strconv"
	"strings"
	"time"

	"animalstore"
)

// plot is a stacked bar chart. The template draws it as SVG, with its labels next to
// it in HTML, so that they keep their size when the plot is narrow.
type plot struct {
	ID      string
	Title   string
	Series  []string // the names of what is stacked, bottom first
	Classes []string // their classes, which have the colours
	Bars    []bar
	Each    string // what a bar is, such as "hour"
	Days    bool   // bars are days of UTC, not instants
}

type bar struct {
	Start  animalstore.Time
	Values []int64
}

// total is the height of a bar.
func (b bar) total() (sum int64) {
	for _, v := range b.Values {
		sum += v
	}
	return sum
}

// Totals are the sums of each series, for the legend.
func (p plot) Totals() []int64 {
	totals := make([]int64, len(p.Series))
	for _, b := range p.Bars {
		for i, v := range b.Values {
			totals[i] += v
		}
	}
	return totals
}

// Top is the highest value of the axis: a round number.
func (p plot) Top() int64 {
	highest := int64(1)
	for _, b := range p.Bars {
		highest = max(highest, b.total())
	}
	if highest <= 4 {
		return 4
	}
	step := math.Pow(10, math.Floor(math.Log10(float64(highest)/4)))
	for _, factor := range []float64{1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10} {
		if s := factor * step; s == math.Trunc(s) && s*4 >= float64(highest) {
			return int64(s * 4)
		}
	}
	return int64(10 * step * 4)
}

// Ticks are the labels of the vertical axis, top first.
func (p plot) Ticks() []int64 {
	top := p.Top()
	return []int64{top, top / 4 * 3, top / 2, top / 4, 0}
}

const (
	plotWidth  = 1000
	plotHeight = 200
)

// SVG draws the bars and the lines of the axis.
func (p plot) SVG() template.HTML {
	var b strings.Builder
	num := func(f float64) string { return strconv.FormatFloat(math.Round(f*100)/100, 'f', -1, 64) }
	b.WriteString(`<svg viewBox="0 0 ` + strconv.Itoa(plotWidth) + ` ` + strconv.Itoa(plotHeight) +
		`" preserveAspectRatio="none" role="img" aria-labelledby="` + p.ID + `-title">`)
	for i := range 5 {
		y := num(float64(i) * plotHeight / 4)
		b.WriteString(`<path class="grid" d="M0 ` + y + `H` + strconv.Itoa(plotWidth) + `"/>`)
	}
	width := plotWidth / float64(max(1, len(p.Bars)))
	top := float64(p.Top())
	for i, one := range p.Bars {
		base := float64(plotHeight)
		for j, v := range one.Values {
			if v == 0 {
				continue
			}
			height := max(1.5, float64(v)/top*plotHeight)
			base -= height
			b.WriteString(`<rect class="` + p.Classes[j] + `" x="` + num((float64(i)+0.1)*width) + `" y="` + num(max(0, base)) +
				`" width="` + num(width*0.8) + `" height="` + num(height) + `"/>`)
		}
	}
	b.WriteString(`</svg>`)
	return template.HTML(b.String())
}

// XLabels are a few of the bars' times, evenly spread, the first and last included.
func (p plot) XLabels() (labels []template.HTML) {
	n := len(p.Bars)
	if n == 0 {
		return nil
	}
	count := min(n, 4)
	for i := range count {
		gaps := max(1, count-1)
		labels = append(labels, p.Label(p.Bars[(2*i*(n-1)+gaps)/(2*gaps)])) // rounded
	}
	return labels
}

// Label is the time of a bar.
func (p plot) Label(b bar) template.HTML {
	if p.Days {
		return template.HTML(b.Start.UTC().Format("2 Jan"))
	}
	format, style := "15:04", "time"
	if len(p.Bars) > 60 {
		format, style = "2 Jan, 15:04", "day"
	}
	return timeElement(b.Start, style, b.Start.UTC().Format(format))
}

// Rows are the bars for the table, newest first, without those that are empty.
func (p plot) Rows() (rows []bar) {
	for i := len(p.Bars) - 1; i >= 0; i-- {
		if p.Bars[i].total() > 0 {
			rows = append(rows, p.Bars[i])
		}
	}
	return rows
}

// period is a span of usage that a page can show.
type period struct {
	Name  string // in the URL
	Title string
	hours int
}

var periods = []period{{"24h", "24 hours", 24}, {"7d", "7 days", 7 * 24}, {"90d", "90 days", 90 * 24}}

// findPeriod returns the period in the URL, or the first.
func (v *visit) findPeriod() period {
	for _, p := range periods {
		if p.Name == v.r.URL.Query().Get("period") {
			return p
		}
	}
	return periods[0]
}

// plotUsage draws the usage of a key. 90 days are shown by day: hours would be too thin
// to see.
func (c *Console) plotUsage(usage []animalstore.Usage, over period) plot {
	each, unit := time.Hour, "hour"
	if over.hours > 7*24 {
		each, unit = 24*time.Hour, "day"
	}
	count := over.hours / int(each/time.Hour)
	last := c.Now().UTC().Truncate(each)
	p := plot{
		ID: "usage", Title: "Requests per " + unit + ", last " + over.Title, Each: unit, Days: unit == "day",
		Series: []string{"Admitted", "Refused"}, Classes: []string{"served", "limited"},
		Bars: make([]bar, count),
	}
	for i := range p.Bars {
		p.Bars[i] = bar{animalstore.At(last.Add(-time.Duration(count-1-i) * each)), make([]int64, 2)}
	}
	for _, u := range usage {
		i := count - 1 - int(last.Sub(u.Hour.UTC().Truncate(each))/each)
		if i < 0 || i >= count {
			continue
		}
		p.Bars[i].Values[0] += u.Admitted
		p.Bars[i].Values[1] += u.Refused
	}
	return p
}
