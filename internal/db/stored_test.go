package db_test

import (
	"slices"
	"testing"

	"animalstore"
)

// TestStoredValues: the engines' SQL contains these values. Lists only grow at their end.
func TestStoredValues(t *testing.T) {
	begins(t, animalstore.PetStatuses, animalstore.PetAvailable, animalstore.PetPending, animalstore.PetSold)
	begins(t, animalstore.OrderStatuses, animalstore.OrderPlaced, animalstore.OrderApproved, animalstore.OrderDelivered, animalstore.OrderCancelled)
	begins(t, animalstore.WebhookStates, animalstore.WebhookActive, animalstore.WebhookPaused, animalstore.WebhookDisabled)
	begins(t, animalstore.DeliveryStates, animalstore.DeliveryPending, animalstore.DeliveryDelivered, animalstore.DeliveryFailed)
	if animalstore.Admin != 4 {
		t.Errorf("keys that manage keys have the permission %d, want 4", animalstore.Admin)
	}
	begins(t, animalstore.EventTypes, animalstore.PetCreated, animalstore.PetUpdated, animalstore.PetDeleted)
	for i, eventType := range animalstore.EventTypes {
		if (eventType.Resource() == "pet") != (i <= 2) || (eventType == animalstore.CategoryUpdated) != (i == 5) {
			t.Errorf("%s has the stored value %d, but up to 2 are events of pets, and 5 is category.updated", eventType, i)
		}
	}
}

func begins[S comparable](t *testing.T, list []S, want ...S) {
	t.Helper()
	if len(list) < len(want) || !slices.Equal(list[:len(want)], want) {
		t.Errorf("the list is %v, want it to begin with %v", list, want)
	}
}
