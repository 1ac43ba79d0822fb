package db

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"animalstore"
)

// TestNextAttempt is the whole schedule, on a clock that moves from attempt to attempt.
func TestNextAttempt(t *testing.T) {
	start := animalstore.At(time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC))
	for _, random := range []float64{0, 0.5, 1} {
		now, factor := start, 0.9+0.2*random
		for attempts, seconds := range []float64{0, 5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400} {
			if attempts == 0 {
				continue // at once
			}
			next, more := NextAttempt(attempts, now, random, 0)
			if want := animalstore.At(now.Add(time.Duration(seconds * factor * float64(time.Second)))); !more || next != want {
				t.Errorf("after attempt %d at %s: got %s, %t, want %s", attempts, now, next, more, want)
			}
			now = next
		}
		if _, more := NextAttempt(10, now, random, 0); more {
			t.Error("there is an attempt after the tenth")
		}
	}
	for _, test := range []struct {
		attempts          int
		retryAfter, delay time.Duration
	}{
		{1, time.Second, 5 * time.Second}, {1, time.Minute, time.Minute}, {2, time.Minute, 5 * time.Minute},
		{1, 24 * time.Hour, 24 * time.Hour}, {1, 48 * time.Hour, 24 * time.Hour}, {1, -time.Hour, 5 * time.Second},
	} {
		if next, _ := NextAttempt(test.attempts, start, 0.5, test.retryAfter); next != animalstore.At(start.Add(test.delay)) {
			t.Errorf("attempt %d with Retry-After %s: got %s, want %s", test.attempts, test.retryAfter, next.Sub(start.Time), test.delay)
		}
	}
	if _, more := NextAttempt(10, start, 0.5, time.Hour); more {
		t.Error("Retry-After adds an attempt after the last")
	}
}

func TestDeliveryResult(t *testing.T) {
	at := animalstore.AtMilli(1_000_000)
	for _, test := range []struct {
		name   string
		tries  int
		event  int64
		status int
		want   animalstore.DeliveryState
		next   animalstore.Time
		gone   bool
	}{
		{"200", 0, 7, 200, animalstore.DeliveryDelivered, animalstore.Time{}, false},
		{"299 at last", 9, 7, 299, animalstore.DeliveryDelivered, animalstore.Time{}, false},
		{"no response", 0, 7, 0, animalstore.DeliveryPending, animalstore.AtMilli(1_005_250), false},
		{"300", 1, 7, 300, animalstore.DeliveryPending, animalstore.AtMilli(1_300_250), false},
		{"500 at last", 9, 7, 500, animalstore.DeliveryFailed, animalstore.Time{}, false},
		{"retried by hand after the last", 12, 7, 500, animalstore.DeliveryFailed, animalstore.Time{}, false},
		{"410", 0, 7, 410, animalstore.DeliveryFailed, animalstore.Time{}, true},
		{"ping", 0, 0, 204, animalstore.DeliveryDelivered, animalstore.Time{}, false},
		{"ping failed", 0, 0, 500, animalstore.DeliveryFailed, animalstore.Time{}, false},
	} {
		d := &ClaimedDelivery{EventID: test.event, Tries: test.tries}
		a := animalstore.Attempt{Time: at, DurationMs: 250}
		if test.status != 0 {
			a.Status = &test.status
		}
		r := d.Result(a, 0.5, 0)
		if r.State != test.want || r.Next != test.next || r.Gone != test.gone {
			t.Errorf("%s: got %s, next %d, gone %t, want %s, %d, %t", test.name, r.State, r.Next.Milli(), r.Gone, test.want, test.next.Milli(), test.gone)
		}
	}
}

func TestClaimedDelivery(t *testing.T) {
	d := ClaimedDelivery{ID: 3, WebhookID: 2, EventID: 17, Type: animalstore.PetCreated, Time: animalstore.AtMilli(1614265330123), Data: json.RawMessage(`{"id":1}`), Secrets: []string{"whsec_canary"}}
	if want := `{"type":"pet.created","timestamp":"2021-02-25T15:02:10.123Z","data":{"id":1}}`; string(d.Body()) != want {
		t.Errorf("got %s, want %s", d.Body(), want)
	}
	if d.MessageID() != "evt_17" {
		t.Errorf("got the id %s", d.MessageID())
	}
	if text := fmt.Sprintf("%v %+v %#v %s", d, d, d, d); strings.Contains(text, "canary") {
		t.Errorf("printing it shows the secret: %s", text)
	}
	d.EventID = 0
	if d.MessageID() != "ping_3" {
		t.Errorf("got the id %s of a ping", d.MessageID())
	}
}

func TestOnlyTheLastAttemptsAreKept(t *testing.T) {
	text := "[]"
	for n := range 25 {
		var err error
		if text, err = AddAttempt(text, animalstore.Attempt{DurationMs: int64(n)}); err != nil {
			t.Fatal(err)
		}
	}
	if attempts, err := ParseAttempts(text); err != nil || len(attempts) != animalstore.MaxAttemptsShown || attempts[0].DurationMs != 5 {
		t.Errorf("got %s (%v), want the last %d attempts", text, err, animalstore.MaxAttemptsShown)
	}
}
