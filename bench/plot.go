package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"slices"
)

const (
	plotLabels = 210 // width of what stands left of the bars
	plotBars   = 520
	plotNotes  = 190
	plotBar    = 16
	plotGap    = 14
	plotTop    = 54
)

// plotColours are the contestants', in the order in which they first appear.
var plotColours = []string{"#1b6ca8", "#9aa5b1", "#5aa9e6", "#d1495b", "#edae49", "#66a182", "#8d6a9f"}

// plot draws a group of bars for each load: requests a second of every
// contestant, where those of ours are 1.
func plot(outcomes []outcome) []byte {
	type group struct {
		title string
		bars  []outcome
	}
	var groups []group
	var names []string
	widest := 1.0
	for _, o := range outcomes {
		title := fmt.Sprintf("%s, %d conn.", o.work, o.connections)
		if len(groups) == 0 || groups[len(groups)-1].title != title {
			groups = append(groups, group{title: title})
		}
		last := &groups[len(groups)-1]
		last.bars = append(last.bars, o)
		if !slices.Contains(names, o.name) {
			names = append(names, o.name)
		}
		widest = max(widest, share(o))
	}
	var out bytes.Buffer
	width, height := plotLabels+plotBars+plotNotes, plotTop+len(outcomes)*plotBar+len(groups)*plotGap+10
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" viewBox="0 0 %d %d" font-family="sans-serif" font-size="12">`+"\n", width, height, width, height)
	fmt.Fprintf(&out, `<rect width="%d" height="%d" fill="#ffffff"/>`+"\n", width, height)
	fmt.Fprintf(&out, `<text x="10" y="22" font-size="15" font-weight="bold">Requests a second, as a multiple of ours on SQLite</text>`+"\n")
	fmt.Fprintf(&out, `<text x="10" y="40" fill="#555555">longer is faster; medians of the rounds of one run</text>`+"\n")
	scale := plotBars / widest
	y := plotTop
	for _, g := range groups {
		fmt.Fprintf(&out, `<text x="10" y="%d" font-weight="bold">%s</text>`+"\n", y+plotGap-2, escape(g.title))
		y += plotGap
		for _, o := range g.bars {
			colour := plotColours[slices.Index(names, o.name)%len(plotColours)]
			length := max(1, share(o)*scale)
			fmt.Fprintf(&out, `<text x="%d" y="%d" text-anchor="end">%s</text>`+"\n", plotLabels-8, y+plotBar-5, escape(o.name))
			fmt.Fprintf(&out, `<rect x="%d" y="%d" width="%.1f" height="%d" fill="%s"/>`+"\n", plotLabels, y+2, length, plotBar-3, colour)
			fmt.Fprintf(&out, `<text x="%.1f" y="%d">%.2f · %.0f/s</text>`+"\n", plotLabels+length+6, y+plotBar-5, share(o), o.middle(turn.perSecond))
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
