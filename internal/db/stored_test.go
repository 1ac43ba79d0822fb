package db_test

import (
	"fmt"
	"slices"
	"testing"

	"animalstore"
	"animalstore/internal/db"
)

// TestSQLNames: the constants in SQL text match the stored values.
func TestSQLNames(t *testing.T) {
	index := func(i int64) string { return fmt.Sprint(i) }
	for got, want := range map[[2]string]string{
		{"pet.created", db.SQLPetCreated}:           index(db.EventTypeIndex(animalstore.PetCreated)),
		{"category.updated", db.SQLCategoryUpdated}: index(db.EventTypeIndex(animalstore.CategoryUpdated)),
		{"active", db.SQLWebhookActive}:             index(db.StoredIndex(animalstore.WebhookStates, animalstore.WebhookActive)),
		{"paused", db.SQLWebhookPaused}:             index(db.StoredIndex(animalstore.WebhookStates, animalstore.WebhookPaused)),
		{"pending", db.SQLDeliveryPending}:          index(db.StoredIndex(animalstore.DeliveryStates, animalstore.DeliveryPending)),
		{"admin", db.SQLAdmin}:                      fmt.Sprintf("permissions & %d <> 0", animalstore.Admin),
	} {
		if got[1] != want {
			t.Errorf("%s is %q in SQL, want %q", got[0], got[1], want)
		}
	}
	for i, eventType := range animalstore.EventTypes {
		if other := i > 2; db.SQLOtherSubject != "type > 2" || other != (eventType.Resource() != "pet") {
			t.Errorf("%s has the stored value %d, but events of pets are all but %s", eventType, i, db.SQLOtherSubject)
		}
	}
	open := []animalstore.OrderStatus{animalstore.OrderPlaced, animalstore.OrderApproved}
	if first := animalstore.OrderStatuses[:2]; db.SQLOpenOrder != "status <= 1" || !slices.Equal(first, open) {
		t.Errorf("open orders are %q, and the first statuses %v", db.SQLOpenOrder, first)
	}
}
