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

// testHeaders checks which window a decision shows, and its Retry-After.
func testHeaders(t *testing.T, newSubject New) {
	midnight := milli("2026-03-11T00:00:00Z")
	for _, tc := range []struct {
		name      string
		perMinute int64
		perDay    int64
		at        int64
		requests  int64
		limit     int64
		remaining int64
		reset     int64
	}{
		{"day has more left: the minute", 5, 9, noon, 1, 5, 4, noon - 250 + 61*second},
		{"both have as many left: the minute", 5, 5, noon, 1, 5, 4, noon - 250 + 61*second},
		{"day has fewer left: the day", 5, 4, noon, 1, 4, 3, midnight},
		{"only the minute is exhausted: the minute", 5, 6, noon, 5, 5, 0, noon - 250 + 61*second},
		{"only the day is exhausted: the day", 5, 3, noon, 3, 3, 0, midnight},
		{"both are exhausted, the day resets later: the day", 5, 5, noon, 5, 5, 0, midnight},
		{"both are exhausted, the minute resets later: the minute", 2, 2, midnight - 10*second, 2, 2, 0, midnight + 50*second},
		{"both are exhausted and reset together", 2, 2, midnight - 60*second, 2, 2, 0, midnight},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newClient(t, newSubject, animalstore.Limits{PerMinute: tc.perMinute, PerDay: tc.perDay})
			c.at(tc.at)
			d := c.admitted(tc.requests)
			equal(t, "Limit", d.Limit, tc.limit)
			equal(t, "Remaining", d.Remaining, tc.remaining)
			equal(t, "Reset", d.Reset, tc.reset/second)
			equal(t, "RetryAfter", d.RetryAfter, 0)
			if tc.remaining > 0 {
				return
			}
			d = c.take()
			equal(t, "next request admitted", d.Allowed, false)
			equal(t, "Limit of the refusal", d.Limit, tc.limit)
			equal(t, "Reset of the refusal", d.Reset, tc.reset/second)
			c.at(tc.reset - 1)
			equal(t, "admitted 1 ms before Reset", c.take().Allowed, false)
			c.at(tc.reset)
			equal(t, "admitted at Reset", c.take().Allowed, true)
		})
	}

	for _, tc := range []struct {
		before time.Duration // the window's end
		want   int64
	}{
		{time.Millisecond, 1},
		{999 * time.Millisecond, 1},
		{time.Second, 1},
		{1001 * time.Millisecond, 2},
		{59_999 * time.Millisecond, 60},
		{60 * time.Second, 60},
	} {
		t.Run("Retry-After "+tc.before.String()+" before the end", func(t *testing.T) {
			c := newClient(t, newSubject, animalstore.Limits{PerMinute: 1, PerDay: 10})
			end := c.admitted(1).Reset * second
			c.at(end - tc.before.Milliseconds())
			equal(t, "RetryAfter", c.refused(1, animalstore.RateLimitExceeded).RetryAfter, tc.want)
		})
	}
}
