package examples_test

import (
	"context"
	"fmt"
	"os"
	"time"

	"animalstore"
	"animalstore/client"
)

// The functions in this file are the Go examples on the docs page. Each is named after
// its operation id. TestGoExamples runs them.

func listPets(ctx context.Context, c *client.Client) error {
	for pet, err := range c.ListPets(ctx, animalstore.PetQuery{Status: animalstore.PetAvailable}) {
		if err != nil {
			return err
		}
		fmt.Println(pet.ID, pet.Name)
	}
	return nil
}

func createPet(ctx context.Context, c *client.Client) error {
	pet, err := c.CreatePet(ctx, animalstore.NewPet{Name: "Rex", CategoryID: 7})
	if err != nil {
		return err
	}
	fmt.Println(pet.ID, pet.Status)
	return nil
}

func createPetBatch(ctx context.Context, c *client.Client) error {
	pets, err := c.CreatePetBatch(ctx, []animalstore.NewPet{{Name: "Rex", CategoryID: 7}, {Name: "Mia", CategoryID: 3}})
	if err != nil {
		return err
	}
	fmt.Println(pets[0].ID, pets[1].ID)
	return nil
}

func getPet(ctx context.Context, c *client.Client) error {
	pet, err := c.FindPet(ctx, 42) // uses the list, because this operation is deprecated
	if err != nil {
		return err
	}
	fmt.Println(pet.Name, pet.Status)
	return nil
}

func updatePet(ctx context.Context, c *client.Client) error {
	pet, err := c.UpdatePet(ctx, 42, animalstore.PetPatch{Name: new("Rex II")})
	if err != nil {
		return err
	}
	fmt.Println(pet.Name, pet.Status)
	return nil
}

func deletePet(ctx context.Context, c *client.Client) error {
	return c.DeletePet(ctx, 42)
}

func addPhoto(ctx context.Context, c *client.Client) error {
	file, err := os.Open("photo.jpg")
	if err != nil {
		return err
	}
	defer file.Close()
	photo, err := c.AddPhoto(ctx, 42, file)
	if err != nil {
		return err
	}
	fmt.Println(photo.ID, photo.Width, photo.Height)
	return nil
}

func listPhotos(ctx context.Context, c *client.Client) error {
	for photo, err := range c.ListPhotos(ctx, animalstore.PhotoQuery{PetIDs: []int64{42, 41}}) {
		if err != nil {
			return err
		}
		fmt.Println(photo.ID, photo.PetID)
	}
	return nil
}

func getPhoto(ctx context.Context, c *client.Client) error {
	photo, err := c.GetPhoto(ctx, 5)
	if err != nil {
		return err
	}
	fmt.Println(photo.PetID, photo.Width, photo.Height)
	return nil
}

func deletePhoto(ctx context.Context, c *client.Client) error {
	return c.DeletePhoto(ctx, 5)
}

func getImage(ctx context.Context, c *client.Client) error {
	image, err := c.GetImage(ctx, 5)
	if err != nil {
		return err
	}
	return os.WriteFile("photo.jpg", image.Data, 0o644)
}

func getThumbnail(ctx context.Context, c *client.Client) error {
	image, err := c.GetThumbnail(ctx, 5)
	if err != nil {
		return err
	}
	return os.WriteFile("thumbnail.jpg", image.Data, 0o644)
}

func listOrders(ctx context.Context, c *client.Client) error {
	open := []animalstore.OrderStatus{animalstore.OrderPlaced, animalstore.OrderApproved}
	for order, err := range c.ListOrders(ctx, animalstore.OrderQuery{Statuses: open, Oldest: true}) {
		if err != nil {
			return err
		}
		fmt.Println(order.ID, order.PetID)
	}
	return nil
}

func placeOrder(ctx context.Context, c *client.Client) error {
	order, err := c.PlaceOrder(ctx, animalstore.NewOrder{PetID: 42, Reference: "A-1042"})
	if err != nil {
		return err
	}
	fmt.Println(order.ID, order.Status)
	return nil
}

func getOrder(ctx context.Context, c *client.Client) error {
	order, err := c.GetOrder(ctx, 9)
	if err != nil {
		return err
	}
	fmt.Println(order.PetID, order.Status)
	return nil
}

func updateOrder(ctx context.Context, c *client.Client) error {
	order, err := c.UpdateOrder(ctx, 9, animalstore.OrderPatch{Status: new(animalstore.OrderApproved)})
	if err != nil {
		return err
	}
	fmt.Println(order.PetID, order.Status)
	return nil
}

func getInventory(ctx context.Context, c *client.Client) error {
	inventory, err := c.GetInventory(ctx, animalstore.InventoryQuery{CategoryID: new(int64(7))})
	if err != nil {
		return err
	}
	fmt.Println(inventory.Available, inventory.Pending, inventory.Sold)
	return nil
}

func listCategories(ctx context.Context, c *client.Client) error {
	for category, err := range c.ListCategories(ctx) {
		if err != nil {
			return err
		}
		fmt.Println(category.ID, category.Name)
	}
	return nil
}

func getCategory(ctx context.Context, c *client.Client) error {
	category, err := c.GetCategory(ctx, 7)
	if err != nil {
		return err
	}
	fmt.Println(category.Name)
	return nil
}

func putCategory(ctx context.Context, c *client.Client) error {
	category, err := c.PutCategory(ctx, animalstore.Category{ID: 7, Name: "Dogs"})
	if err != nil {
		return err
	}
	fmt.Println(category.Name)
	return nil
}

func listEvents(ctx context.Context, c *client.Client) error {
	// Use Events instead of ListEvents to wait for new ones.
	for event, err := range c.ListEvents(ctx, animalstore.EventQuery{Types: "pet.*"}) {
		if err != nil {
			return err
		}
		fmt.Println(event.Type, event.Subject)
	}
	return nil
}

func getLimits(ctx context.Context, c *client.Client) error {
	limits, err := c.GetLimits(ctx)
	if err != nil {
		return err
	}
	fmt.Println(limits.Minute.Remaining, "of", limits.Minute.Limit)
	return nil
}

func getUsage(ctx context.Context, c *client.Client) error {
	usage, err := c.GetUsage(ctx, 24)
	if err != nil {
		return err
	}
	for _, hour := range usage {
		fmt.Println(hour.Hour, hour.Admitted, hour.Refused)
	}
	return nil
}

func listFailures(ctx context.Context, c *client.Client) error {
	for failure, err := range c.ListFailures(ctx, animalstore.FailureQuery{Code: animalstore.ValidationFailed}) {
		if err != nil {
			return err
		}
		fmt.Println(failure.Time, failure.Method, failure.Message)
	}
	return nil
}

func getStatus(ctx context.Context, c *client.Client) error {
	status, err := c.GetStatus(ctx)
	if err != nil {
		return err
	}
	fmt.Println(status.Version, status.Engine, status.SizeBytes)
	return nil
}

func listKeys(ctx context.Context, c *client.Client) error {
	for key, err := range c.ListKeys(ctx) {
		if err != nil {
			return err
		}
		fmt.Println(key.ID, key.Name)
	}
	return nil
}

func createKey(ctx context.Context, c *client.Client) error {
	key, err := c.CreateKey(ctx, client.NewKey{Name: "shop", Plan: animalstore.PlanPro})
	if err != nil {
		return err
	}
	fmt.Println(key.ID, key.Secret) // store it: it isn't shown again
	return nil
}

func getKey(ctx context.Context, c *client.Client) error {
	key, err := c.GetKey(ctx, 2)
	if err != nil {
		return err
	}
	fmt.Println(key.Name, key.Plan)
	return nil
}

func updateKey(ctx context.Context, c *client.Client) error {
	key, err := c.UpdateKey(ctx, 2, animalstore.KeyPatch{Plan: new(animalstore.PlanBusiness)})
	if err != nil {
		return err
	}
	fmt.Println(key.Name, key.Plan)
	return nil
}

func revokeKey(ctx context.Context, c *client.Client) error {
	return c.RevokeKey(ctx, 2)
}

func rotateKey(ctx context.Context, c *client.Client) error {
	key, err := c.RotateKey(ctx, 2, time.Hour) // the old secret works for another hour
	if err != nil {
		return err
	}
	fmt.Println(key.Secret) // store it: it isn't shown again
	return nil
}

func unbanKey(ctx context.Context, c *client.Client) error {
	key, err := c.UnbanKey(ctx, 2)
	if err != nil {
		return err
	}
	fmt.Println(key.Name)
	return nil
}

func getKeyUsage(ctx context.Context, c *client.Client) error {
	usage, err := c.GetKeyUsage(ctx, 2, 24)
	if err != nil {
		return err
	}
	for _, hour := range usage {
		fmt.Println(hour.Hour, hour.Admitted, hour.Refused)
	}
	return nil
}

func listWebhooks(ctx context.Context, c *client.Client) error {
	for webhook, err := range c.ListWebhooks(ctx) {
		if err != nil {
			return err
		}
		fmt.Println(webhook.ID, webhook.URL, webhook.State)
	}
	return nil
}

func createWebhook(ctx context.Context, c *client.Client) error {
	webhook, err := c.CreateWebhook(ctx, animalstore.NewWebhook{URL: "https://example.com/hook", Types: "pet.*,order.created"})
	if err != nil {
		return err
	}
	fmt.Println(webhook.ID, webhook.Secret) // store it: it isn't shown again
	return nil
}

func getWebhook(ctx context.Context, c *client.Client) error {
	webhook, err := c.GetWebhook(ctx, 1)
	if err != nil {
		return err
	}
	fmt.Println(webhook.URL, webhook.State, webhook.LastDeliveredAt)
	return nil
}

func updateWebhook(ctx context.Context, c *client.Client) error {
	webhook, err := c.UpdateWebhook(ctx, 1, animalstore.WebhookPatch{State: new(animalstore.WebhookPaused)})
	if err != nil {
		return err
	}
	fmt.Println(webhook.URL, webhook.State)
	return nil
}

func deleteWebhook(ctx context.Context, c *client.Client) error {
	return c.DeleteWebhook(ctx, 1)
}

func rotateWebhook(ctx context.Context, c *client.Client) error {
	webhook, err := c.RotateWebhook(ctx, 1, time.Hour) // both secrets sign for another hour
	if err != nil {
		return err
	}
	fmt.Println(webhook.Secret) // store it: it isn't shown again
	return nil
}

func pingWebhook(ctx context.Context, c *client.Client) error {
	delivery, err := c.PingWebhook(ctx, 1)
	if err != nil {
		return err
	}
	fmt.Println(delivery.ID, delivery.State)
	return nil
}

func listDeliveries(ctx context.Context, c *client.Client) error {
	for delivery, err := range c.ListDeliveries(ctx, 1, animalstore.DeliveryQuery{State: animalstore.DeliveryFailed}) {
		if err != nil {
			return err
		}
		fmt.Println(delivery.ID, delivery.Type, delivery.Attempts)
	}
	return nil
}

func retryDelivery(ctx context.Context, c *client.Client) error {
	delivery, err := c.RetryDelivery(ctx, 1, 1)
	if err != nil {
		return err
	}
	fmt.Println(delivery.ID, delivery.NextAttemptAt)
	return nil
}

func getDelivery(ctx context.Context, c *client.Client) error {
	delivery, err := c.GetDelivery(ctx, 1, 1)
	if err != nil {
		return err
	}
	fmt.Println(delivery.State, string(delivery.Body))
	return nil
}

func retryDeliveries(ctx context.Context, c *client.Client) error {
	deliveries, err := c.RetryDeliveries(ctx, 1, animalstore.DeliveryRetry{State: animalstore.DeliveryFailed})
	if err != nil {
		return err
	}
	fmt.Println(deliveries)
	return nil
}
