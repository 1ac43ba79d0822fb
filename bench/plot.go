package main

import (
	"bytes"
	"cmp"
	"fmt"
	"html"
)

const (
	plotLabels = 210 // width of the names left of the bars
	plotBars   = 520
	plotNotes  = 190
	plotBar    = 16
	plotTitle  = 24 // height of a workload's name, with the gap above it
	plotTop    = 50
	plotWidest = 2.5 // multiple of ours; a longer bar is cut off
)

// plotColours are those of the other servers. Ours is blue, under each of its names.
var plotColours = map[string]string{
	"bare": "#9aa5b1", "postgres": "#5aa9e6", "pocketbase": "#d1495b", "fastify": "#edae49", "axum": "#66a182",
}

// plot draws a group of bars for each workload: the requests per second of every
// server, as a multiple of ours.
func plot(results []result) []byte {
	title := func(r result) string { return fmt.Sprintf("%s, %d conn.", r.work, r.connections) }
	groups := 0
	for i, r := range results {
		if i == 0 || title(r) != title(results[i-1]) {
			groups++
		}
	}
	var out bytes.Buffer
	width, height := plotLabels+plotBars+plotNotes, plotTop+len(results)*plotBar+groups*plotTitle+10
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height, width, height)
	fmt.Fprintf(&out, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	fmt.Fprintf(&out, `<text x="10" y="22" font-size="15" font-weight="bold">Requests per second, as a multiple of ours on SQLite</text>`+"\n")
	fmt.Fprintf(&out, `<text x="10" y="40" fill="#555555">longer is faster; medians of the rounds of one run; a bar with an arrow is cut off</text>`+"\n")
	y := plotTop
	for i, r := range results {
		if i == 0 || title(r) != title(results[i-1]) {
			fmt.Fprintf(&out, `<text x="10" y="%d" font-weight="bold">%s</text>`+"\n", y+plotTitle-5, html.EscapeString(title(r)))
			y += plotTitle
		}
		multiple := 1 / median(r.ratios(turn.perSecond))
		length, arrow := max(1, multiple/plotWidest*plotBars), ""
		if multiple > plotWidest {
			length, arrow = plotBars, "→ "
		}
		fmt.Fprintf(&out, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", plotLabels-8, y+plotBar-5, html.EscapeString(r.server))
		fmt.Fprintf(&out, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", plotLabels, y+2, length, plotBar-3, cmp.Or(plotColours[r.server], "#1b6ca8"))
		fmt.Fprintf(&out, `<text x="%.1f" y="%d">%s%.2f · %.0f/s</text>`+"\n", plotLabels+length+6, y+plotBar-5, arrow, multiple, r.median(turn.perSecond))
		y += plotBar
	}
	fmt.Fprintln(&out, `</svg>`)
	return out.Bytes()
}
