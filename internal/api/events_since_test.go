package api_test

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// startHourly starts a service with ten events, the first at the returned time and each of
// the others an hour later. The third and all from the fifth are of pets, the fourth of a
// category.
func startHourly(t *testing.T) (s *service, first time.Time) {
	t.Helper()
	s = start(t) // two events of keys
	for range 7 {
		s.createPet(t, "Rex")
	}
	first = time.Now().Add(-20 * time.Hour).Truncate(time.Millisecond).UTC()
	c, err := sqlite.OpenConn(strings.TrimPrefix(s.database, "sqlite:"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	err = sqlitex.Execute(c, "UPDATE events SET created_at = ? + (id - 1) * 3600000",
		&sqlitex.ExecOptions{Args: []any{first.UnixMilli()}})
	if err != nil {
		t.Fatal(err)
	}
	return s, first
}

// sinceHour is the parameter for a time some hours after the first event.
func sinceHour(first time.Time, hours float64) string {
	return "since=" + first.Add(time.Duration(hours*float64(time.Hour))).Format("2006-01-02T15:04:05.000Z07:00")
}

// upTo returns the ids from one to another, in either direction.
func upTo(from, to int64) (ids []int64) {
	for id := min(from, to); id <= max(from, to); id++ {
		ids = append(ids, id)
	}
	if from > to {
		slices.Reverse(ids)
	}
	return ids
}

// TestEventsSince: pages of any size begin at the time or, backwards, end there.
func TestEventsSince(t *testing.T) {
	s, first := startHourly(t)
	all := call{key: s.admin}
	for _, test := range []struct {
		hours float64
		from  int64
	}{
		{-1000, 1}, {-1, 1}, {0, 1}, // before the oldest
		{0.5, 2}, {3, 4}, {3.1, 5}, {4, 5}, {9, 10},
		{4.016, 5}, {4.017, 6}, // 58 s and 61 s after the fifth
		{9.5, 11}, {20.1, 11}, {1000, 11}, // after the newest, some in the future
	} {
		since := sinceHour(first, test.hours)
		for _, limit := range []int{1, 3, 100} {
			all.path = fmt.Sprintf("/v1/events?%s&limit=%d", since, limit)
			want := upTo(test.from, 10)
			if test.from > 10 {
				want = nil
			}
			end := fmt.Sprintf("/v1/events?after=10&limit=%d", limit)
			if ids, next := s.walk(t, all); !slices.Equal(ids, want) || next != end {
				t.Errorf("%s: got events %d, then %s, want %d", all.path, ids, next, want)
			}
			all.path += "&before=latest"
			slices.Reverse(want)
			if ids, next := s.walk(t, all); !slices.Equal(ids, want) || next != "" {
				t.Errorf("%s: got events %d, then %q, want %d", all.path, ids, next, want)
			}
		}
	}
	all.path = "/v1/events?since=1970-01-01T00:00:00Z" // a usual way to ask for everything
	if ids, _ := s.walk(t, all); !slices.Equal(ids, upTo(1, 10)) {
		t.Errorf("since 1970: got events %d, want all", ids)
	}
	if dropped, err := s.db.DropEvents(t.Context(), animalstore.At(time.Now()), 4); err != nil || dropped != 4 {
		t.Fatalf("got %d dropped, %v, want 4", dropped, err)
	}
	all.path = "/v1/events?" + sinceHour(first, 1)
	if ids, _ := s.walk(t, all); !slices.Equal(ids, upTo(5, 10)) {
		t.Errorf("since a dropped event: got events %d, want those that are kept", ids)
	}
}

// TestEventsSinceFuture: a time in the future is where the feed ends, although events from the
// last minute might be at or after it by another clock.
func TestEventsSinceFuture(t *testing.T) {
	s := start(t)
	s.createPet(t, "new")
	newest, err := s.db.PublishEvents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	soon := sinceHour(time.Now().UTC(), 0.005)
	all := call{path: "/v1/events?" + soon, key: s.admin}
	if ids, next := s.walk(t, all); len(ids) > 0 || next != fmt.Sprint("/v1/events?after=", newest) {
		t.Errorf("got events %d, then %s, want none, then those after %d", ids, next, newest)
	}
	all.path += "&before=latest"
	if ids, next := s.walk(t, all); len(ids) > 0 || next != "" {
		t.Errorf("backwards: got events %d, then %q, want none", ids, next)
	}
}

// TestEventsSinceLinks: the link of a page goes on with after alone, that of a page backwards
// with before and since, and both keep the filters.
func TestEventsSinceLinks(t *testing.T) {
	s, first := startHourly(t)
	since := sinceHour(first, 4)
	for query, want := range map[string]string{
		since + "&limit=2":                           "after=6&limit=2",
		since + "&limit=2&type=pet.*&wait=1":         "after=6&limit=2&type=pet.%2A&wait=1",
		since + "&subject=pet%2F3":                   "after=10&subject=pet%2F3",
		since + "&petId=1":                           "after=10&petId=1", // it is older
		since + "&before=latest&limit=2":             "before=9&limit=2&" + escaped(since),
		since + "&before=8&limit=2&type=pet.created": "before=6&limit=2&" + escaped(since) + "&type=pet.created",
		since + "&before=8&limit=3":                  "", // to where it ends
		since + "&before=3":                          "",
		since + "&before=latest&petId=1":             "",
	} {
		got := s.do(t, call{path: "/v1/events?" + query, key: s.admin})
		got.want(t, 200, "")
		if want != "" {
			want = "</v1/events?" + want + `>; rel="next"`
		}
		if link := got.header.Get("Link"); link != want {
			t.Errorf("%s: got Link %s, want %s", query, link, want)
		}
	}
}

func escaped(parameter string) string { return strings.ReplaceAll(parameter, ":", "%3A") }

func TestEventsSinceRefused(t *testing.T) {
	s := start(t)
	const at = "since=2026-11-15T10:00:00Z"
	for _, query := range []string{
		at + "&after=1", at + "&after=0", at + "&after=latest",
		"since=", "since=yesterday", "since=2h", "since=2026-11-15",
		"since=1763200000", "since=2026-11-15T10:00:00", "since=0001-01-01T00:00:00Z", at + "&" + at,
	} {
		for _, accept := range []string{"application/json", "text/event-stream"} {
			c := with(call{path: "/v1/events?" + query, bad: true}, "Accept", accept)
			s.do(t, c).want(t, http.StatusBadRequest, "invalid_parameter")
		}
	}
	s.db.arm("EventsSince", failWith(db.ErrUnavailable))
	for _, query := range []string{at, at + "&before=latest"} {
		s.do(t, call{path: "/v1/events?" + query}).want(t, http.StatusServiceUnavailable, "unavailable")
	}
}

// TestStreamSince: a stream begins at the time, unless it is resumed.
func TestStreamSince(t *testing.T) {
	s, first := startHourly(t)
	path := "/v1/events?" + sinceHour(first, 5)
	for last, want := range map[string]int64{"": 6, "2": 3, "8": 9} {
		c := call{path: path, key: s.admin}
		if last != "" {
			c = with(c, "Last-Event-ID", last)
		}
		st := s.openStream(t, c)
		if got := st.next().ID; got != want {
			t.Errorf("Last-Event-ID %q: got event %d, want %d", last, got, want)
		}
		st.res.Body.Close()
	}
	st := s.openStream(t, call{path: "/v1/events?" + sinceHour(first, 1000), key: s.admin})
	s.createPet(t, "new")
	if got := st.next().ID; got != 11 {
		t.Errorf("since the future: got event %d, want that of the new pet", got)
	}
}
