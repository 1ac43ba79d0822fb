package limittest

import (
	"testing"
	"time"

	"animalstore"
)

// testAheadClock checks what happens to a key that was used while the clock was
// ahead, once the clock is correct again.
func testAheadClock(t *testing.T, newSubject New) {
	midnight := milli("2026-03-11T00:00:00Z")
	for _, tc := range []struct {
		name string
		back int64 // the correct time
		jump time.Duration
	}{
		{"by a second", midnight - 1, time.Second},
		{"by two hours", midnight - hour, 2 * time.Hour},
		{"by 30 days", midnight - 12*hour, 30 * 24 * time.Hour},
	} {
		t.Run("day used up while the clock was over midnight "+tc.name, func(t *testing.T) {
			c := newClient(t, newSubject, animalstore.Limits{PerMinute: 10, PerDay: 5})
			c.at(tc.back)
			c.admitted(2)
			c.wait(tc.jump)
			c.admitted(5)
			c.refused(1, animalstore.DailyQuotaExceeded)
			c.at(tc.back)
			d := c.refused(3, animalstore.DailyQuotaExceeded) // one for each server, if there are several
			if wait := d.Reset*second - c.now; wait > day || d.RetryAfter > day/second {
				t.Errorf("refused for %d ms, Retry-After %d: want at most a day", wait, d.RetryAfter)
			}
			equal(t, "day's reset", c.status().Day.Reset.Milli(), d.Reset*second)
			c.wait(time.Hour)
			c.must(c.s.Restart())
			equal(t, "Reset after a restart", c.refused(1, animalstore.DailyQuotaExceeded).Reset, d.Reset)
			c.at(d.Reset*second - 1)
			c.refused(1, animalstore.DailyQuotaExceeded)
			c.at(d.Reset * second)
			c.admitted(4)
			c.must(c.s.Restart())
			c.admitted(1)
		})
	}
	t.Run("strikes while the clock was ahead last ten minutes", func(t *testing.T) {
		c := newClient(t, newSubject, tiny)
		c.wait(36 * time.Hour)
		c.untilRefused()
		c.wait(2 * time.Second)
		c.refused(50, animalstore.RateLimitExceeded)
		c.at(noon)
		equal(t, "strikes", c.status().Strikes, 50)
		c.at(noon + 10*minute)
		equal(t, "strikes ten minutes later", c.status().Strikes, 0)
	})
}

// testUnbanAfterStep checks that an unban lifts the ban, and nothing else, regardless of
// what the clock did in between.
func testUnbanAfterStep(t *testing.T, newSubject New) {
	for _, step := range []time.Duration{time.Millisecond, 48 * time.Hour} {
		t.Run("clock set back after the ban by "+step.String(), func(t *testing.T) {
			c := newClient(t, newSubject, tiny)
			c.hammer()
			c.wait(-step)
			c.refused(1, animalstore.KeyBanned)
			c.unban()
			c.notBanned()
			c.must(c.s.Restart())
			c.notBanned()
			c.wait(2 * time.Minute)
			ban := c.hammer()
			equal(t, "Reset of the next ban", ban.Reset, roundUp(c.now+15*minute, second)/second)
			c.refused(3, animalstore.KeyBanned)
		})
		t.Run("lifted by a clock that is ahead by "+step.String(), func(t *testing.T) {
			c := newClient(t, newSubject, tiny)
			c.hammer()
			c.key.Unban(animalstore.AtMilli(c.now+step.Milliseconds()), c.status().BannedAt)
			c.notBanned()
			c.wait(2 * time.Minute)
			equal(t, "Reset of the next ban", c.hammer().Reset, roundUp(c.now+15*minute, second)/second)
			c.refused(1, animalstore.KeyBanned)
		})
	}
}
