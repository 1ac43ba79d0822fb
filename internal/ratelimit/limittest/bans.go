package limittest

import (
	"fmt"
	"testing"
	"time"

	"animalstore"
)

// tiny is a plan that is used up quickly. Its threshold is 100 strikes.
var tiny = animalstore.Limits{PerMinute: 2, PerDay: 1_000_000}

// testStrikes checks what counts as a strike and how many cause a ban.
func testStrikes(t *testing.T, newSubject New) {
	for _, tc := range []struct {
		after time.Duration // the window's first refusal
		want  int64
	}{
		{0, 0},
		{999 * time.Millisecond, 0},
		{time.Second, 0},
		{1001 * time.Millisecond, 1},
		{30 * time.Second, 1},
	} {
		t.Run(fmt.Sprintf("%s after the first refusal: %d", tc.after, tc.want), func(t *testing.T) {
			c := newClient(t, newSubject, tiny)
			c.untilRefused()
			c.wait(tc.after)
			c.refused(1, animalstore.RateLimitExceeded)
			equal(t, "strikes", c.status().Strikes, tc.want)
		})
	}

	for _, tc := range []struct {
		perMinute, want int64
	}{{1, 100}, {100, 100}, {101, 101}, {300, 300}} {
		t.Run(fmt.Sprintf("%d a minute: strike %d bans", tc.perMinute, tc.want), func(t *testing.T) {
			c := newClient(t, newSubject, animalstore.Limits{PerMinute: tc.perMinute, PerDay: 1_000_000})
			equal(t, "threshold", c.status().Threshold, tc.want)
			c.untilRefused()
			c.wait(1001 * time.Millisecond)
			c.refused(tc.want-1, animalstore.RateLimitExceeded)
			equal(t, "strikes before the ban", c.status().Strikes, tc.want-1)
			d := c.refused(1, animalstore.KeyBanned)
			equal(t, "BannedNow", d.BannedNow, true)
			equal(t, "strikes after the ban", c.status().Strikes, 0)
			equal(t, "BannedNow of the next request", c.take().BannedNow, false)
		})
	}

	t.Run("strikes are forgotten 10 minutes after the first", func(t *testing.T) {
		for _, tc := range []struct {
			name  string
			after int64
			want  int64
		}{
			{"1 ms before", 10*minute - 1, 99},
			{"at the end", 10 * minute, 0},
		} {
			c := newClient(t, newSubject, animalstore.Limits{PerMinute: 2, PerDay: 2})
			c.untilRefused()
			c.wait(1001 * time.Millisecond)
			first := c.now
			c.refused(1, animalstore.DailyQuotaExceeded)
			c.wait(9 * time.Minute) // later strikes don't move the window
			c.refused(98, animalstore.DailyQuotaExceeded)
			c.at(first + tc.after)
			equal(t, tc.name+": strikes", c.status().Strikes, tc.want)
			equal(t, tc.name+": the next one bans", c.take().BannedNow, tc.want == 99)
		}
	})
}

// banLengths are the lengths of the first, second, third and every later ban.
var banLengths = []int64{5 * minute, 15 * minute, 1 * hour, 24 * hour, 24 * hour, 24 * hour}

// testBans checks how long bans and their levels last.
func testBans(t *testing.T, newSubject New) {
	t.Run("5 min, 15 min, 1 h, then 24 h", func(t *testing.T) {
		c := newClient(t, newSubject, tiny)
		for i, length := range banLengths {
			d := c.hammer()
			end := roundUp(c.now+length, second)
			equal(t, fmt.Sprintf("ban %d: Reset", i+1), d.Reset, end/second)
			equal(t, fmt.Sprintf("ban %d: Remaining", i+1), d.Remaining, 0)
			equal(t, fmt.Sprintf("ban %d: RetryAfter", i+1), d.RetryAfter, (end-c.now+999)/second)
			equal(t, fmt.Sprintf("ban %d: level", i+1), c.status().BanLevel, int64(min(i+1, 4)))
			equal(t, fmt.Sprintf("ban %d: banned until", i+1), c.status().BannedUntil.Milli(), end)
			c.at(end - 1)
			equal(t, fmt.Sprintf("ban %d: RetryAfter 1 ms before the end", i+1), c.refused(1, animalstore.KeyBanned).RetryAfter, 1)
			c.at(end)
			c.admitted(1)
			equal(t, fmt.Sprintf("ban %d: banned until, after it", i+1), c.status().BannedUntil.IsZero(), true)
		}
	})
	for _, tc := range []struct {
		name  string
		after int64 // the second ban's end
		level int64
		span  int64
	}{
		{"1 ms before 24 h the level is kept", 24*hour - 1, 2, hour},
		{"24 h after the last ban's end the level is cleared", 24 * hour, 0, 5 * minute},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newClient(t, newSubject, tiny)
			c.at(c.hammer().Reset * second)
			end := c.hammer().Reset * second
			c.at(end + tc.after - 1001) // hammer waits that long before it strikes
			c.untilRefused()
			c.at(end + tc.after)
			equal(t, "level", c.status().BanLevel, tc.level)
			c.refused(99, animalstore.RateLimitExceeded)
			d := c.refused(1, animalstore.KeyBanned)
			equal(t, "Reset", d.Reset, roundUp(c.now+tc.span, second)/second)
		})
	}
}
