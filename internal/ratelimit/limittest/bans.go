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

	t.Run("a burst in flight costs nothing", func(t *testing.T) {
		c := newClient(t, newSubject, tiny)
		c.untilRefused()
		c.refused(500, animalstore.RateLimitExceeded)
		c.wait(time.Second)
		c.refused(500, animalstore.RateLimitExceeded)
		equal(t, "strikes", c.status().Strikes, 0)
	})
	t.Run("each window has its own first refusal", func(t *testing.T) {
		c := newClient(t, newSubject, tiny)
		c.untilRefused()
		c.wait(2 * time.Second)
		c.refused(1, animalstore.RateLimitExceeded)
		c.wait(time.Minute)
		c.untilRefused()
		equal(t, "strikes after the first refusal of the next window", c.status().Strikes, 1)
	})
	t.Run("the day's refusals are strikes too", func(t *testing.T) {
		c := newClient(t, newSubject, animalstore.Limits{PerMinute: 5, PerDay: 3})
		c.untilRefused()
		c.wait(6 * time.Hour)
		c.refused(99, animalstore.DailyQuotaExceeded)
		equal(t, "strikes", c.status().Strikes, 99)
		c.refused(1, animalstore.KeyBanned)
	})

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
	t.Run("a client that waits for Retry-After gets none", func(t *testing.T) {
		c := newClient(t, newSubject, animalstore.Limits{PerMinute: 7, PerDay: 40})
		for range 20 {
			d := c.untilRefused()
			c.wait(time.Duration(d.RetryAfter) * time.Second)
			c.admitted(1)
		}
		equal(t, "strikes", c.status().Strikes, 0)
		equal(t, "level", c.status().BanLevel, 0)
	})
	t.Run("a smaller plan bans at its own threshold", func(t *testing.T) {
		c := newClient(t, newSubject, animalstore.Limits{PerMinute: 300, PerDay: 1_000_000})
		c.untilRefused()
		c.wait(2 * time.Second)
		c.refused(150, animalstore.RateLimitExceeded)
		c.key.Limits.PerMinute = 60
		c.refused(1, animalstore.KeyBanned)
	})
}

// banLengths are the lengths of the first, second, third and every later ban.
var banLengths = []int64{5 * minute, 15 * minute, 1 * hour, 24 * hour, 24 * hour, 24 * hour}

// testBans checks how long bans last and what happens during them.
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
	t.Run("requests during a ban change nothing", func(t *testing.T) {
		c := newClient(t, newSubject, tiny)
		ban := c.hammer()
		end := ban.Reset * second
		for _, at := range []int64{c.now, c.now + 2*second, c.now + 4*minute, end - 1} {
			c.at(at)
			d := c.refused(300, animalstore.KeyBanned)
			equal(t, "Reset", d.Reset, ban.Reset)
			equal(t, "strikes", c.status().Strikes, 0)
			equal(t, "level", c.status().BanLevel, 1)
		}
		c.at(end)
		c.admitted(2)
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
	t.Run("a ban shows the minute limit of the current plan", func(t *testing.T) {
		c := newClient(t, newSubject, tiny)
		c.hammer()
		c.key.Limits = animalstore.Limits{PerMinute: 1000, PerDay: 100_000}
		equal(t, "Limit", c.refused(1, animalstore.KeyBanned).Limit, 1000)
	})
}

// testUnban checks that an operator can lift a ban.
func testUnban(t *testing.T, newSubject New) {
	t.Run("a lifted ban ends immediately", func(t *testing.T) {
		c := newClient(t, newSubject, tiny)
		c.hammer()
		c.wait(2 * time.Minute)
		c.refused(1, animalstore.KeyBanned)
		c.unban()
		c.admitted(2)
		equal(t, "banned until", c.status().BannedUntil.IsZero(), true)
	})
	t.Run("the level clears 24 h after it was lifted", func(t *testing.T) {
		c := newClient(t, newSubject, tiny)
		c.at(c.hammer().Reset * second)
		c.at(c.hammer().Reset * second)
		c.hammer()
		c.wait(time.Second)
		c.unban()
		c.take()
		equal(t, "level after unban", c.status().BanLevel, 3)
		c.wait(24 * time.Hour)
		equal(t, "level a day later", c.status().BanLevel, 0)
	})
	t.Run("an unban survives a restart and a kill", func(t *testing.T) {
		c := newClient(t, newSubject, tiny)
		c.hammer()
		c.must(c.s.Save())
		c.wait(2 * time.Minute)
		c.unban()
		c.must(c.s.Kill())
		c.notBanned()
		c.must(c.s.Restart())
		c.notBanned()
	})
}

// unban does what an operator's unban does.
func (c *client) unban() {
	c.t.Helper()
	c.key.Unban(animalstore.AtMilli(c.now), c.status().BannedAt)
}

// notBanned makes a request, which may be refused, but not by a ban.
func (c *client) notBanned() {
	c.t.Helper()
	if d := c.take(); d.Code == animalstore.KeyBanned {
		c.t.Fatalf("at %s: banned until %d, want the ban lifted", clock(c.now), d.Reset)
	}
	if until := c.status().BannedUntil; !until.IsZero() {
		c.t.Fatalf("at %s: status says banned until %s, want the ban lifted", clock(c.now), until)
	}
}
