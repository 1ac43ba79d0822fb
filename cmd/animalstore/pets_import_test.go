package main

import (
	"testing"
	"time"

	"animalstore"
)

func TestImportTime(t *testing.T) {
	for _, test := range []struct {
		requests, remaining int64 // of 300 per minute
		roundTrip, want     time.Duration
	}{
		{100, 300, 0, time.Second}, // nothing waits
		{100, 300, 190 * time.Millisecond, 20 * time.Second},
		{225, 300, 0, 30 * time.Second}, // the second half is paced
		{75, 150, 0, 30 * time.Second},
		{600, 300, 0, 2 * time.Minute},
	} {
		minute := animalstore.LimitWindow{Limit: 300, Remaining: test.remaining}
		if got := importTime(test.requests, minute, test.roundTrip); got != test.want {
			t.Errorf("%d requests with %d left and a round trip of %v: got %v, want %v", test.requests, test.remaining, test.roundTrip, got, test.want)
		}
	}
}
