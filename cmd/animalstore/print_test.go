package main

import (
	"bytes"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/terminal"
)

// TestPrintForwarded: one line for an event, with what the receiver did.
func TestPrintForwarded(t *testing.T) {
	now, status := time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC), 204
	event := animalstore.Event{ID: 7, Type: animalstore.PetCreated, Subject: "pet/1"}
	for _, test := range []struct {
		name    string
		printer terminal.Printer
		attempt animalstore.Attempt
		want    string
	}{
		{"pipe", terminal.Printer{}, animalstore.Attempt{Time: animalstore.At(now), Status: &status, DurationMs: 3}, "7\t2026-03-10T12:00:00.000Z\tpet.created\tpet/1\t204\t3\n"},
		{"no response", terminal.Printer{}, animalstore.Attempt{Time: animalstore.At(now), Error: "timeout"}, "7\t2026-03-10T12:00:00.000Z\tpet.created\tpet/1\ttimeout\t0\n"},
		{"terminal", terminal.Printer{Screen: terminal.Screen{Terminal: true}}, animalstore.Attempt{Time: animalstore.At(now), Status: &status, DurationMs: 3}, "2026-03-10 12:00:00  pet.created       pet/1         204  (3 ms)\n"},
		{"JSON", terminal.Printer{JSON: true}, animalstore.Attempt{Time: animalstore.At(now), Status: &status, DurationMs: 3}, `{"eventId":7,"type":"pet.created","subject":"pet/1","time":"2026-03-10T12:00:00.000Z","status":204,"error":null,"durationMs":3}` + "\n"},
	} {
		var out bytes.Buffer
		test.printer.Out = &out
		if err := printForwarded(&test.printer, event, test.attempt); err != nil || out.String() != test.want {
			t.Errorf("%s: got %q and %v\nwant %q", test.name, &out, err, test.want)
		}
	}
}

// TestStateColours: every state has its colour. Only those that are about a failure are red.
func TestStateColours(t *testing.T) {
	var states []string
	for _, s := range animalstore.PetStatuses {
		states = append(states, string(s))
	}
	for _, s := range animalstore.OrderStatuses {
		states = append(states, string(s))
	}
	for _, s := range animalstore.DeliveryStates {
		states = append(states, string(s))
	}
	for _, s := range settableStates {
		states = append(states, string(s))
	}
	for _, s := range states {
		if red := stateColour(s) == terminal.Red; red != (s == string(animalstore.DeliveryFailed)) {
			t.Errorf("%s: got red: %t", s, red)
		}
	}
}
