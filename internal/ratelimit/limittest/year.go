package limittest

import (
	"fmt"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/testenv"
)

// testYear simulates a year of quotas and bans.
func testYear(t *testing.T, newSubject New) {
	if isCostly(newSubject(t)) && !testenv.Soak {
		t.Skip("too many requests: only make soak runs this")
	}
	newYear := milli("2026-01-01T00:00:00Z")
	const days = 365

	for _, p := range plans {
		perDay := p.limits.PerDay
		if !testenv.Soak {
			perDay = min(perDay, 2*p.limits.PerMinute+1) // in three minutes
		}
		t.Run(fmt.Sprintf("%s: exactly %d requests a day are admitted", p.name, perDay), func(t *testing.T) {
			c := newClient(t, newSubject, animalstore.Limits{PerMinute: p.limits.PerMinute, PerDay: perDay})
			c.at(newYear)
			var admitted int64
			for c.now < newYear+days*day {
				d := c.take()
				if d.Allowed {
					admitted++
				}
				if d.Remaining == 0 {
					c.at(d.Reset * second)
				}
			}
			equal(t, "admitted in a year", admitted, days*perDay)
			equal(t, "level", c.status().BanLevel, 0)
			equal(t, "the clock at the end", clock(c.now), "2027-01-01T00:00:00.000Z")
		})
	}

	t.Run("a client that never stops is banned most of the time", func(t *testing.T) {
		c := newClient(t, newSubject, animalstore.Limits{PerMinute: 1, PerDay: 1_000_000})
		c.at(newYear)
		var bans []int64
		for c.now < newYear+days*day {
			d := c.take()
			switch {
			case d.BannedNow:
				bans = append(bans, d.Reset*second-c.now)
			case d.Code == animalstore.KeyBanned:
				c.at(min(c.now+hour, d.Reset*second))
				continue
			}
			c.wait(5 * time.Second)
		}
		// A strike every 5 s, except for the first refusal of each minute: the ban
		// comes within 10 minutes and lasts a day.
		if len(bans) < 360 || len(bans) > 370 {
			t.Errorf("got %d bans in a year, want one for every day", len(bans))
		}
		for i, got := range bans {
			if want := banLengths[min(i, 3)]; got < want || got >= want+second {
				t.Errorf("ban %d: got %s, want %s", i+1, time.Duration(got)*time.Millisecond, time.Duration(want)*time.Millisecond)
			}
		}
	})
	t.Run("a client banned once a week starts at level 1 each time", func(t *testing.T) {
		c := newClient(t, newSubject, tiny)
		for week := range 52 {
			c.at(newYear + int64(week)*7*day)
			ban := c.hammer()
			equal(t, fmt.Sprintf("week %d: level", week), c.status().BanLevel, 1)
			c.at(ban.Reset * second)
			c.admitted(1)
		}
	})
}
