package db_test

import (
	"testing"

	"animalstore"
	"animalstore/internal/db"
)

// TestStoredActors: the stored key of an event tells who made it.
func TestStoredActors(t *testing.T) {
	for _, test := range []struct {
		by   db.Origin
		want animalstore.Actor
	}{
		{db.Origin{KeyID: 7, RequestID: "a"}, animalstore.ActorKey},
		{db.Origin{}, animalstore.ActorCommandLine},
		{db.Service, animalstore.ActorService},
	} {
		row := db.StoredEvent{KeyID: test.by.KeyID, RequestID: test.by.RequestID}
		got := row.Event()
		isKey := test.want == animalstore.ActorKey
		if got.Actor != test.want || (got.KeyID != nil) != isKey || (got.RequestID != nil) != isKey {
			t.Errorf("by %+v: got actor %q, key %v, request %v, want %s", test.by, got.Actor, got.KeyID, got.RequestID, test.want)
		}
	}
}
