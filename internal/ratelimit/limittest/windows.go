package limittest

import (
	"testing"
	"time"

	"animalstore"
)

// testDays uses up the day of a plan, over several minutes or with one request.
func testDays(t *testing.T, newSubject New) {
	for _, limits := range []animalstore.Limits{{PerMinute: 7, PerDay: 40}, {PerMinute: 1, PerDay: 1}} {
		c := newClient(t, newSubject, limits)
		for spent := int64(0); spent < limits.PerDay; {
			n := min(limits.PerMinute, limits.PerDay-spent)
			d := c.admitted(n)
			if spent += n; spent == limits.PerDay {
				equal(t, "Remaining of the last request", d.Remaining, 0)
				equal(t, "Limit of the last request", d.Limit, limits.PerDay)
			}
			c.wait(61 * time.Second)
		}
		midnight := milli("2026-03-11T00:00:00Z")
		d := c.refused(1, animalstore.DailyQuotaExceeded)
		equal(t, "Limit", d.Limit, limits.PerDay)
		equal(t, "Remaining", d.Remaining, 0)
		equal(t, "Reset", d.Reset, midnight/second)
		c.at(midnight - 1)
		c.refused(1, animalstore.DailyQuotaExceeded)
		c.at(midnight)
		c.admitted(1)
	}
}

// testWindows checks when windows start and end.
func testWindows(t *testing.T, newSubject New) {
	three := animalstore.Limits{PerMinute: 3, PerDay: 100}
	for _, tc := range []struct {
		first, end string
	}{
		{"2026-03-10T12:00:00.000Z", "2026-03-10T12:01:00Z"},
		{"2026-03-10T12:00:00.001Z", "2026-03-10T12:01:01Z"},
		{"2026-03-10T12:00:00.999Z", "2026-03-10T12:01:01Z"},
		{"2026-03-10T12:00:59.500Z", "2026-03-10T12:02:00Z"},
		{"2026-03-10T23:59:30.000Z", "2026-03-11T00:00:30Z"},
		{"2028-02-28T23:59:59.999Z", "2028-02-29T00:01:00Z"},
	} {
		t.Run("first request at "+tc.first, func(t *testing.T) {
			c := newClient(t, newSubject, three)
			c.at(milli(tc.first))
			end := milli(tc.end)
			equal(t, "Reset", c.admitted(1).Reset, end/second)
			c.at(end - 1)
			c.admitted(2)
			equal(t, "Reset of a refusal", c.refused(1, animalstore.RateLimitExceeded).Reset, end/second)
			c.at(end)
			equal(t, "Remaining in the next window", c.admitted(1).Remaining, 2)
		})
	}

	t.Run("a refused request is charged to neither window", func(t *testing.T) {
		c := newClient(t, newSubject, animalstore.Limits{PerMinute: 3, PerDay: 10})
		c.admitted(3)
		c.refused(50, animalstore.RateLimitExceeded)
		equal(t, "day left", c.status().Day.Remaining, 7)
		c.wait(2 * time.Minute)
		equal(t, "minute left after the window", c.status().Minute.Remaining, 3)
	})
	t.Run("a refused request opens no minute window", func(t *testing.T) {
		c := newClient(t, newSubject, animalstore.Limits{PerMinute: 3, PerDay: 3})
		c.admitted(3)
		midnight := milli("2026-03-11T00:00:00Z")
		c.at(midnight - 500)
		c.refused(1, animalstore.DailyQuotaExceeded)
		c.at(midnight)
		equal(t, "Reset", c.admitted(1).Reset, (midnight+minute)/second)
	})
	t.Run("a minute window continues over midnight", func(t *testing.T) {
		c := newClient(t, newSubject, three)
		midnight := milli("2026-03-11T00:00:00Z")
		c.at(midnight - 30*second)
		c.admitted(3)
		c.at(midnight)
		c.refused(1, animalstore.RateLimitExceeded)
		equal(t, "day left", c.status().Day.Remaining, 100)
		c.at(midnight + 30*second)
		c.admitted(1)
	})
	t.Run("keys don't share windows", func(t *testing.T) {
		c := newClient(t, newSubject, three)
		c.admitted(3)
		c.refused(1, animalstore.RateLimitExceeded)
		other := &client{t: t, s: c.s, now: c.now, key: &animalstore.Key{ID: 65, Limits: three}}
		equal(t, "Remaining of the other key", other.admitted(1).Remaining, 2)
	})
	t.Run("a new plan counts requests already made", func(t *testing.T) {
		c := newClient(t, newSubject, three)
		c.admitted(3)
		c.refused(1, animalstore.RateLimitExceeded)
		c.key.Limits.PerMinute = 5
		equal(t, "Remaining on the larger plan", c.admitted(1).Remaining, 1)
		c.key.Limits.PerMinute = 2
		c.refused(1, animalstore.RateLimitExceeded)
		equal(t, "minute left on the smaller plan", c.status().Minute.Remaining, 0)
		c.key.Limits.PerDay = 1
		c.refused(1, animalstore.DailyQuotaExceeded)
		equal(t, "day left on the smaller plan", c.status().Day.Remaining, 0)
	})
}
