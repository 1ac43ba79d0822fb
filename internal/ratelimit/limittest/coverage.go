package limittest

import (
	"fmt"
	"math"
	"strings"
)

// coverage counts the situations that random sequences reached, so that the test
// fails if the generator misses one.
type coverage struct {
	sequences, operations, requests int64
	count                           map[string]int64
}

// The situations that every run must reach, in the order they are printed.
var situations = []string{
	"admitted",
	"refused by the minute",
	"refused by the day",
	"refused by the minute, though the day is exhausted too",
	"refused by a ban",
	"refused within the grace second",
	"ban of level 1",
	"ban of level 2",
	"ban of level 3",
	"ban of level 4",
	"ban of level 4 again",
	"level cleared",
	"strikes forgotten",
	"midnight between two requests",
	"minute window over midnight",
	"clock 1 ms before a window's end",
	"clock at a window's end",
	"clock 1 ms before a ban's end",
	"clock at a ban's end",
	"step back inside a window",
	"step back to before a window",
	"step back over midnight",
	"step back during a ban",
	"plan changed in a window",
	"plan changed during a ban",
	"restart in a window",
	"restart with strikes",
	"restart during a ban",
	"kill in a window",
	"kill during a ban",
	"ban lifted",
	"ban lifted before its start",
	"invariant: Remaining 0, and refused before Reset",
	"invariant: Remaining 0, and admitted from Reset on",
	"invariant: Remaining above 0, and admitted",
}

// forgetful are the situations of a limiter that loses state when it is killed.
var forgetful = []string{"kill forgot a request"}

func (c *coverage) saw(situation string) { c.count[situation]++ }

func (c *coverage) sawIf(condition bool, situation string) {
	if condition {
		c.count[situation]++
	}
}

// missed says what was reached too rarely.
func (c *coverage) missed(forgets bool) (missed []string) {
	// Sizes vary about as much as their mean, so the mean of a short run is less
	// certain: five standard errors allow for chance.
	atLeast := min(50, meanSize*(1-5/math.Sqrt(float64(c.sequences))))
	if mean := float64(c.operations) / float64(c.sequences); mean < atLeast {
		missed = append(missed, fmt.Sprintf("sequences have %.1f operations on average, want at least %.1f", mean, atLeast))
	}
	least := c.sequences / 50
	for _, s := range wanted(forgets) {
		if c.count[s] < least {
			missed = append(missed, fmt.Sprintf("%q was reached %d times in %d sequences, want at least %d", s, c.count[s], c.sequences, least))
		}
	}
	return missed
}

func (c *coverage) table(forgets bool) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d sequences, %d operations, %d requests\n", c.sequences, c.operations, c.requests)
	for _, s := range wanted(forgets) {
		fmt.Fprintf(&b, "%9d  %s\n", c.count[s], s)
	}
	return b.String()
}

// wanted are the situations that a run must reach.
func wanted(forgets bool) []string {
	if forgets {
		return append(situations[:len(situations):len(situations)], forgetful...)
	}
	return situations
}
