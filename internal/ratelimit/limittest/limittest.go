// Package limittest is the test suite that every [ratelimit.Limiter] must pass.
//
// Named cases show the numbers of the contract. In random sequences, which include restarts,
// kills, unbans and a clock that is set back, a limiter and a simple model of the contract must
// agree on every decision.
package limittest

import (
	"context"
	"slices"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/ratelimit"
)

// Subject is a limiter under test. The suite controls its clock and can restart it.
// Its Limiter methods always reach the current process.
type Subject interface {
	ratelimit.Limiter

	// SetClock sets the limiter's clock to now, in whole milliseconds, which may be
	// earlier than before. A limiter that uses an external clock, such as Redis's,
	// needs a way to override it in tests.
	SetClock(now time.Time)

	// Save makes all decisions so far survive a kill. It does nothing if the limiter
	// keeps no state in this process.
	Save() error

	// Restart stops the limiter cleanly and starts another one on the same storage.
	// Nothing may be lost.
	Restart() error

	// Kill does the same without stopping the limiter first.
	Kill() error

	// KillForgets reports whether Kill loses the decisions since the last Save.
	KillForgets() bool
}

// New returns a limiter without any state. It is called for each random sequence.
type New func(t testing.TB) Subject

// tests are all tests of the suite but the random sequences.
var tests = []struct {
	name string
	run  func(*testing.T, New)
}{
	{"windows", testWindows},
	{"strikes", testStrikes},
	{"bans", testBans},
	{"concurrent", testConcurrent},
}

// Run runs all tests, or those named in only, on the limiters that newSubject returns,
// and then this many random sequences.
func Run(t *testing.T, newSubject New, sequences int, only ...string) {
	for _, test := range tests {
		if len(only) == 0 || slices.Contains(only, test.name) {
			t.Run(test.name, func(t *testing.T) { test.run(t, newSubject) })
		}
	}
	t.Run("sequences", func(t *testing.T) { testSequences(t, newSubject, sequences) })
}

// noon is the initial time: far from midnight, and not on a whole second.
var noon = milli("2026-03-10T12:00:00.250Z")

func milli(rfc3339 string) int64 {
	t, err := time.Parse(time.RFC3339Nano, rfc3339)
	if err != nil {
		panic(err)
	}
	return t.UnixMilli()
}

// clock formats a time.
func clock(ms int64) string { return animalstore.AtMilli(ms).String() }

// client is the owner of one key.
type client struct {
	t   testing.TB
	s   Subject
	key *animalstore.Key
	now int64
}

// newClient returns a client with a new key on a new limiter.
func newClient(t testing.TB, newSubject New, limits animalstore.Limits) *client {
	t.Helper()
	c := &client{t: t, s: newSubject(t), key: &animalstore.Key{ID: 1, Plan: animalstore.PlanEnterprise, Limits: limits}}
	c.at(noon)
	return c
}

// at sets the clock.
func (c *client) at(now int64) {
	c.now = now
	c.s.SetClock(time.UnixMilli(now))
}

// wait moves the clock.
func (c *client) wait(d time.Duration) { c.at(c.now + d.Milliseconds()) }

func (c *client) take() ratelimit.Decision {
	c.t.Helper()
	d, err := c.s.Take(context.Background(), c.key)
	if err != nil {
		c.t.Fatalf("at %s: Take: %v", clock(c.now), err)
	}
	return d
}

func (c *client) status() ratelimit.Status {
	c.t.Helper()
	st, err := c.s.Status(context.Background(), c.key)
	if err != nil {
		c.t.Fatalf("at %s: Status: %v", clock(c.now), err)
	}
	return st
}

// admitted makes n requests, all of which must be admitted, and returns the last
// decision.
func (c *client) admitted(n int64) ratelimit.Decision {
	c.t.Helper()
	var d ratelimit.Decision
	for i := range n {
		if d = c.take(); !d.Allowed {
			c.t.Fatalf("at %s: request %d of %d: got %s, want it admitted", clock(c.now), i+1, n, d.Code)
		}
	}
	return d
}

// refused makes n requests, all of which must be refused with code, and returns the
// last decision.
func (c *client) refused(n int64, code animalstore.Code) ratelimit.Decision {
	c.t.Helper()
	var d ratelimit.Decision
	for i := range n {
		if d = c.take(); d.Allowed || d.Code != code {
			c.t.Fatalf("at %s: request %d of %d: got %s, want %s", clock(c.now), i+1, n, outcome(d), code)
		}
	}
	return d
}

// untilRefused makes requests until one is refused, and returns that decision.
func (c *client) untilRefused() ratelimit.Decision {
	c.t.Helper()
	for range c.key.Limits.PerMinute + 1 {
		if d := c.take(); !d.Allowed {
			return d
		}
	}
	c.t.Fatalf("at %s: more than %d requests admitted at one instant", clock(c.now), c.key.Limits.PerMinute)
	panic("unreachable")
}

// hammer makes requests until a window refuses, and continues 1,001 ms later until
// the key is banned. It returns the decision that bans it.
func (c *client) hammer() ratelimit.Decision {
	c.t.Helper()
	c.untilRefused()
	c.wait(1001 * time.Millisecond)
	for range c.key.Limits.PerMinute + c.status().Threshold {
		if d := c.take(); d.BannedNow {
			return d
		}
	}
	c.t.Fatalf("at %s: no ban after hammering: %+v", clock(c.now), c.status())
	panic("unreachable")
}

func outcome(d ratelimit.Decision) string {
	if d.Allowed {
		return "admitted"
	}
	return string(d.Code)
}

// must fails on an error of the Subject itself.
func (c *client) must(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// equal compares two values.
func equal[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}
