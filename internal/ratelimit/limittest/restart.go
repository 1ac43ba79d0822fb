package limittest

import (
	"testing"
	"time"

	"animalstore"
)

// testRestart checks which state survives a restart or a kill.
func testRestart(t *testing.T, newSubject New) {
	limits := animalstore.Limits{PerMinute: 5, PerDay: 20}
	ends := []struct {
		name string
		end  func(*client)
	}{
		{"stopped cleanly", func(c *client) { c.must(c.s.Restart()) }},
		{"killed after a save", func(c *client) { c.must(c.s.Save()); c.must(c.s.Kill()) }},
		{"stopped cleanly, then killed before the next save", func(c *client) { c.must(c.s.Restart()); c.must(c.s.Kill()) }},
	}
	for _, e := range ends {
		t.Run(e.name+": counts continue", func(t *testing.T) {
			c := newClient(t, newSubject, limits)
			c.admitted(5)
			c.wait(2 * time.Minute)
			reset := c.admitted(3).Reset
			e.end(c)
			d := c.admitted(1)
			equal(t, "minute left", d.Remaining, 1)
			equal(t, "Reset", d.Reset, reset)
			equal(t, "day left", c.status().Day.Remaining, 11)
		})
		t.Run(e.name+": strikes continue", func(t *testing.T) {
			c := newClient(t, newSubject, limits)
			c.untilRefused()
			c.wait(2 * time.Second)
			c.refused(60, animalstore.RateLimitExceeded)
			e.end(c)
			equal(t, "strikes", c.status().Strikes, 60)
			c.refused(39, animalstore.RateLimitExceeded)
			c.refused(1, animalstore.KeyBanned)
		})
		t.Run(e.name+": a ban continues", func(t *testing.T) {
			c := newClient(t, newSubject, limits)
			ban := c.hammer()
			e.end(c)
			equal(t, "Reset", c.refused(1, animalstore.KeyBanned).Reset, ban.Reset)
			c.at(ban.Reset*second - 1)
			e.end(c)
			c.refused(1, animalstore.KeyBanned)
			c.at(ban.Reset * second)
			c.admitted(1)
			equal(t, "level", c.status().BanLevel, 1)
		})
	}
	t.Run("killed: a ban was saved before its response", func(t *testing.T) {
		c := newClient(t, newSubject, limits)
		ban := c.hammer()
		c.must(c.s.Kill())
		equal(t, "Reset", c.refused(1, animalstore.KeyBanned).Reset, ban.Reset)
	})
	t.Run("killed: everything saved is still there", func(t *testing.T) {
		c := newClient(t, newSubject, limits)
		c.admitted(2)
		c.must(c.s.Save())
		c.admitted(3)
		c.must(c.s.Kill())
		want := int64(15)
		if c.s.KillForgets() {
			want = 18
		}
		equal(t, "day left", c.status().Day.Remaining, want)
	})
	t.Run("Status charges nothing", func(t *testing.T) {
		c := newClient(t, newSubject, limits)
		for range 10 {
			equal(t, "minute left", c.status().Minute.Remaining, 5)
			c.must(c.s.Restart())
		}
		equal(t, "Remaining", c.admitted(1).Remaining, 4)
	})
}
