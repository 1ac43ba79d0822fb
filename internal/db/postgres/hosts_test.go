//go:build unix

package postgres

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestLatestOf: of the hosts that respond, the one with the latest timeline is used. Only a
// timeline that is new doesn't need the others' responses.
func TestLatestOf(t *testing.T) {
	down := response{err: errors.New("down")}
	for _, test := range []struct {
		name      string
		known     string
		responses []response // in their order
		hosts     int        // more than respond: the others hang
		want      int
		took      time.Duration
	}{
		{"one", "", []response{{host: 0, timeline: "00000001"}}, 1, 0, 0},
		{"the former primary first", "", []response{{host: 0, timeline: "00000001"}, {host: 1, timeline: "00000002"}}, 2, 1, 0},
		{"the former primary last", "", []response{{host: 1, timeline: "0000000B"}, {host: 0, timeline: "0000000A"}}, 2, 1, 0},
		{"a standby first", "", []response{{host: 0}, {host: 1, timeline: "00000001"}}, 2, 1, 0},
		{"equal", "00000001", []response{{host: 1, timeline: "00000001"}, {host: 0, timeline: "00000001"}}, 2, 0, 0},
		{"others are down", "00000001", []response{down, {host: 2, timeline: "00000001"}, down}, 3, 2, 0},
		{"others hang", "00000001", []response{{host: 1, timeline: "00000001"}}, 3, 1, findPause},
		{"others hang after a failover", "00000001", []response{{host: 1, timeline: "00000002"}}, 3, 1, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			responses := make(chan response, len(test.responses))
			for _, r := range test.responses {
				responses <- r
			}
			began := time.Now()
			got := latestOf(responses, test.hosts, test.known)
			if took := time.Since(began); got.err != nil || got.host != test.want || took != test.took {
				t.Errorf("%s: got host %d, %v, after %s; want %d after %s", test.name, got.host, got.err, took, test.want, test.took)
			}
		})
	}
	one := make(chan response, 1)
	one <- down
	if got := latestOf(one, 1, ""); got.err != down.err {
		t.Errorf("got %v, want that all are down", got)
	}
}
