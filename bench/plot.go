package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
)

const (
	plotLabels = 210 // width of what stands left of the bars
	plotBars   = 520
	plotNotes  = 190
	plotBar    = 16
	plotTitle  = 24 // height of a load's name, with the gap above it
	plotTop    = 50
	plotWidest = 2.5 // times ours; a longer bar is cut
)

// plotColours are the contestants'.
var plotColours = map[string]string{
	"bare": "#9aa5b1", "postgres": "#5aa9e6", "pocketbase": "#d1495b", "fastify": "#edae49", "axum": "#66a182",
}

// plotColour is blue for ours, however it is named in full.
func plotColour(name string) string {
	if colour, ok := plotColours[name]; ok {
		return colour
	}
	return "#1b6ca8"
}

// plot draws a group of bars for each load: requests a second of every
// contestant, where those of ours are 1.
func plot(outcomes []outcome) []byte {
	type group struct {
		title string
		bars  []outcome
	}
	var groups []group
	for _, o := range outcomes {
		title := fmt.Sprintf("%s, %d conn.", o.work, o.connections)
		if len(groups) == 0 || groups[len(groups)-1].title != title {
			groups = append(groups, group{title: title})
		}
		last := &groups[len(groups)-1]
		last.bars = append(last.bars, o)
	}
	var out bytes.Buffer
	width, height := plotLabels+plotBars+plotNotes, plotTop+len(outcomes)*plotBar+len(groups)*plotTitle+10
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height, width, height)
	fmt.Fprintf(&out, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	fmt.Fprintf(&out, `<text x="10" y="22" font-size="15" font-weight="bold">Requests a second, as a multiple of ours on SQLite</text>`+"\n")
	fmt.Fprintf(&out, `<text x="10" y="40" fill="#555555">longer is faster; medians of the rounds of one run; a bar with an arrow goes on</text>`+"\n")
	y := plotTop
	for _, g := range groups {
		fmt.Fprintf(&out, `<text x="10" y="%d" font-weight="bold">%s</text>`+"\n", y+plotTitle-5, escape(g.title))
		y += plotTitle
		for _, o := range g.bars {
			length, arrow := max(1, share(o)/plotWidest*plotBars), ""
			if share(o) > plotWidest {
				length, arrow = plotBars, "→ "
			}
			fmt.Fprintf(&out, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", plotLabels-8, y+plotBar-5, escape(o.name))
			fmt.Fprintf(&out, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", plotLabels, y+2, length, plotBar-3, plotColour(o.name))
			fmt.Fprintf(&out, `<text x="%.1f" y="%d">%s%.2f · %.0f/s</text>`+"\n", plotLabels+length+6, y+plotBar-5, arrow, share(o), o.middle(turn.perSecond))
			y += plotBar
		}
	}
	fmt.Fprintln(&out, `</svg>`)
	return out.Bytes()
}

// share is the throughput of a contestant as a multiple of ours.
func share(o outcome) float64 { return median(ratios(o.turns, o.ours, turn.perSecond)) }

func escape(text string) string {
	var out bytes.Buffer
	xml.EscapeText(&out, []byte(text))
	return out.String()
}
