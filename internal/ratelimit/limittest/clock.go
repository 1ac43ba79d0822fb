package limittest

import (
	"testing"
	"time"

	"animalstore"
)

// testBackwardClock checks that setting the clock back doesn't lengthen anything by
// more than the step, make a window longer than a new one, or grant quota twice.
func testBackwardClock(t *testing.T, newSubject New) {
	three := animalstore.Limits{PerMinute: 3, PerDay: 1_000}
	midnight := milli("2026-03-11T00:00:00Z")

	for _, step := range []time.Duration{time.Millisecond, time.Minute, 48 * time.Hour} {
		t.Run("minute window, "+step.String(), func(t *testing.T) {
			c := newClient(t, newSubject, three)
			end := c.admitted(2).Reset * second
			c.wait(-step)
			end = min(end, roundUp(c.now+minute, second))
			equal(t, "Reset", c.admitted(1).Reset, end/second)
			c.refused(1, animalstore.RateLimitExceeded)
			c.at(end - 1)
			c.refused(1, animalstore.RateLimitExceeded)
			c.at(end)
			c.admitted(1)
		})
		t.Run("ban, "+step.String(), func(t *testing.T) {
			c := newClient(t, newSubject, three)
			end := c.hammer().Reset * second
			c.wait(-step)
			equal(t, "Reset", c.refused(1, animalstore.KeyBanned).Reset, end/second)
			c.at(end - 1)
			c.refused(1, animalstore.KeyBanned)
			c.at(end)
			c.admitted(1)
		})
	}

	t.Run("over midnight: the new day continues", func(t *testing.T) {
		c := newClient(t, newSubject, animalstore.Limits{PerMinute: 10, PerDay: 5})
		c.at(midnight - 2*minute)
		c.admitted(5)
		c.at(midnight + 1)
		c.admitted(4)
		c.at(midnight - minute)
		d := c.admitted(1)
		equal(t, "Remaining", d.Remaining, 0)
		equal(t, "Reset", d.Reset, (c.now+day)/second)
		c.refused(1, animalstore.DailyQuotaExceeded)
		c.at(midnight)
		c.refused(1, animalstore.DailyQuotaExceeded)
		c.at(midnight + day)
		c.admitted(1)
	})
	t.Run("a refusal before its window's first isn't a strike", func(t *testing.T) {
		c := newClient(t, newSubject, three)
		c.untilRefused()
		c.wait(-time.Hour)
		c.refused(200, animalstore.RateLimitExceeded)
		equal(t, "strikes", c.status().Strikes, 0)
	})
}
