package limittest

import (
	"testing"

	"animalstore"
)

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

	t.Run("keys don't share windows", func(t *testing.T) {
		c := newClient(t, newSubject, three)
		c.admitted(3)
		c.refused(1, animalstore.RateLimitExceeded)
		other := &client{t: t, s: c.s, now: c.now, key: &animalstore.Key{ID: 65, Limits: three}}
		equal(t, "Remaining of the other key", other.admitted(1).Remaining, 2)
	})
}
