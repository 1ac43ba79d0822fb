package db_test

import (
	"testing"

	"animalstore"
	"animalstore/internal/db"
)

// TestStoredActors: events have the right actor, even those stored without one.
func TestStoredActors(t *testing.T) {
	for _, test := range []struct {
		event animalstore.EventType
		by    db.Actor
		want  animalstore.Actor
	}{
		{animalstore.PetCreated, db.Actor{KeyID: 7, RequestID: "a"}, animalstore.ActorKey},
		{animalstore.PetCreated, db.Actor{}, animalstore.ActorCommandLine},
		{animalstore.KeyCreated, db.Service, animalstore.ActorService},
		{animalstore.KeyCreated, db.Actor{}, animalstore.ActorCommandLine},
		{animalstore.WebhookUpdated, db.Actor{}, animalstore.ActorCommandLine},
		{animalstore.WebhookDisabledEvent, db.Service, animalstore.ActorService},
		{animalstore.WebhookDisabledEvent, db.Actor{}, animalstore.ActorService},
		{animalstore.KeyBannedEvent, db.Actor{}, animalstore.ActorService},
		{animalstore.KeyBannedEvent, db.Actor{KeyID: 7, RequestID: "a"}, animalstore.ActorKey},
		{animalstore.KeyUnbanned, db.Actor{}, animalstore.ActorCommandLine},
	} {
		row := db.StoredEvent{Type: db.EventTypeIndex(test.event), KeyID: test.by.KeyID, RequestID: test.by.RequestID}
		got := row.Event()
		isKey := test.want == animalstore.ActorKey
		if got.Actor != test.want || (got.KeyID != nil) != isKey || (got.RequestID != nil) != isKey {
			t.Errorf("%s by %+v: got actor %q, key %v, request %v, want %s", test.event, test.by, got.Actor, got.KeyID, got.RequestID, test.want)
		}
	}
}
