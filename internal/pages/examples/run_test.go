package examples_test

import (
	"context"
	"os"
	"testing"

	"animalstore"
	"animalstore/client"
	"animalstore/client/clienttest"
	"animalstore/internal/photo/phototest"
)

// TestGoExamples runs the Go snippets on a store that contains everything they request.
func TestGoExamples(t *testing.T) {
	c := clienttest.New(t).Client
	ctx := t.Context()
	for range 42 {
		if err := createPet(ctx, c); err != nil {
			t.Fatal(err)
		}
	}
	for id := range int64(9) {
		if _, err := c.PlaceOrder(ctx, animalstore.NewOrder{PetID: id + 1}); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(t.TempDir())
	if err := os.WriteFile("photo.jpg", phototest.JPEG(phototest.Drawing(400, 300)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, e := range []struct {
		name string
		run  func(context.Context, *client.Client) error
	}{
		{"listPets", listPets}, {"createPetBatch", createPetBatch}, {"getPet", getPet}, {"updatePet", updatePet}, {"placeOrder", placeOrder},
		{"addPhoto", addPhoto}, {"addPhoto", addPhoto}, {"addPhoto", addPhoto}, {"addPhoto", addPhoto}, {"addPhoto", addPhoto},
		{"listPhotos", listPhotos}, {"getPhoto", getPhoto}, {"getImage", getImage}, {"getThumbnail", getThumbnail}, {"deletePhoto", deletePhoto},
		{"listOrders", listOrders}, {"getOrder", getOrder}, {"updateOrder", updateOrder},
		{"getInventory", getInventory}, {"listCategories", listCategories}, {"getCategory", getCategory}, {"putCategory", putCategory},
		{"listEvents", listEvents}, {"getLimits", getLimits}, {"getUsage", getUsage}, {"listFailures", listFailures}, {"getStatus", getStatus}, {"createKey", createKey}, {"listKeys", listKeys},
		{"getKey", getKey}, {"updateKey", updateKey}, {"rotateKey", rotateKey}, {"unbanKey", unbanKey},
		{"getKeyUsage", getKeyUsage}, {"revokeKey", revokeKey},
		{"createWebhook", createWebhook}, {"listWebhooks", listWebhooks}, {"getWebhook", getWebhook}, {"updateWebhook", updateWebhook},
		{"rotateWebhook", rotateWebhook}, {"pingWebhook", pingWebhook}, {"listDeliveries", listDeliveries}, {"retryDelivery", retryDelivery},
		{"getDelivery", getDelivery}, {"retryDeliveries", retryDeliveries},
		{"deleteWebhook", deleteWebhook},
	} {
		if err := e.run(ctx, c); err != nil {
			t.Errorf("%s: %v", e.name, err)
		}
	}
	if _, err := c.UpdateOrder(ctx, 10, animalstore.OrderPatch{Status: new(animalstore.OrderCancelled)}); err != nil {
		t.Fatal(err)
	}
	if err := deletePet(ctx, c); err != nil {
		t.Errorf("deletePet: %v", err)
	}
}
