package client_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"animalstore"
	"animalstore/client"
)

func Example() {
	ctx := context.Background()
	c, err := client.New(address, apiKey)
	if err != nil {
		log.Fatal(err)
	}
	pet, err := c.CreatePet(ctx, animalstore.NewPet{Name: "Rex", CategoryID: 7})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(pet.Name, "is", pet.Status)

	order, err := c.PlaceOrder(ctx, animalstore.NewOrder{PetID: pet.ID})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("the order is", order.Status)
	// Output:
	// Rex is available
	// the order is placed
}

func ExampleClient_ListPets() {
	ctx := context.Background()
	c, err := client.New(address, apiKey)
	if err != nil {
		log.Fatal(err)
	}
	for _, name := range []string{"Tom", "Kim", "Ada"} {
		if _, err := c.CreatePet(ctx, animalstore.NewPet{Name: name, CategoryID: 20}); err != nil {
			log.Fatal(err)
		}
	}
	for pet, err := range c.ListPets(ctx, animalstore.PetQuery{CategoryID: new(int64(20))}) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(pet.Name)
		if pet.Name == "Kim" {
			break // requests no further pages
		}
	}
	// Output:
	// Ada
	// Kim
}

// Act on the code of an error of the service.
func ExampleError() {
	ctx := context.Background()
	c, err := client.New(address, apiKey)
	if err != nil {
		log.Fatal(err)
	}
	pet, err := c.CreatePet(ctx, animalstore.NewPet{Name: "Mia", CategoryID: 7, Status: animalstore.PetSold})
	if err != nil {
		log.Fatal(err)
	}
	_, err = c.PlaceOrder(ctx, animalstore.NewOrder{PetID: pet.ID})
	var coded *animalstore.Error
	if errors.As(err, &coded) && coded.Code == animalstore.PetNotAvailable {
		fmt.Println("too late")
	}
	// Output: too late
}

// Change a pet only if it is still in the state you read.
func ExampleIfMatch() {
	ctx := context.Background()
	c, err := client.New(address, apiKey)
	if err != nil {
		log.Fatal(err)
	}
	var seen client.Meta
	pet, err := c.CreatePet(ctx, animalstore.NewPet{Name: "Rex", CategoryID: 7}, client.ReadMeta(&seen))
	if err != nil {
		log.Fatal(err)
	}
	// Somebody else changes it in between:
	if _, err := c.UpdatePet(ctx, pet.ID, animalstore.PetPatch{Name: new("Rexy")}); err != nil {
		log.Fatal(err)
	}
	_, err = c.UpdatePet(ctx, pet.ID, animalstore.PetPatch{Name: new("Rexer")}, client.IfMatch(seen.ETag))
	var coded *animalstore.Error
	if errors.As(err, &coded) {
		fmt.Println(coded.Code)
	}
	// Output: precondition_failed
}

// With your own idempotency key it's safe to repeat the call itself.
func ExampleIdempotencyKey() {
	ctx := context.Background()
	c, err := client.New(address, apiKey)
	if err != nil {
		log.Fatal(err)
	}
	var first int64
	for range 2 { // as after a crash in between
		var m client.Meta
		pet, err := c.CreatePet(ctx, animalstore.NewPet{Name: "Rex", CategoryID: 7},
			client.IdempotencyKey("delivery-4711-line-3"), client.ReadMeta(&m))
		if err != nil {
			log.Fatal(err)
		}
		if first == 0 {
			first = pet.ID
		}
		fmt.Println("the same pet:", pet.ID == first, "- replayed:", m.Replayed)
	}
	// Output:
	// the same pet: true - replayed: false
	// the same pet: true - replayed: true
}

// Limit how long a call may wait for a limit.
func ExampleRateLimitError() {
	c, err := client.New(address, smallKey(), client.WithMaxWait(time.Second))
	if err != nil {
		log.Fatal(err)
	}
	for range 3 {
		_, err = c.GetLimits(context.Background())
	}
	var limit *client.RateLimitError
	if errors.As(err, &limit) {
		fmt.Printf("%d requests a %s, the next within a minute: %t\n", limit.Limit, limit.Window, limit.RetryAfter <= 62*time.Second)
	}
	// Output: 2 requests a minute, the next within a minute: true
}

// Add many pets at the pace that the plan allows.
func ExampleWithPacing() {
	c, err := client.New(address, apiKey, client.WithPacing(),
		client.WithOnWait(func(w client.Wait) { log.Printf("%s: waiting %v: %v", w.Operation, w.For, w.Reason) }))
	if err != nil {
		log.Fatal(err)
	}
	added := 0
	for i := range 100 {
		pet := animalstore.NewPet{Name: fmt.Sprintf("Puppy %d", i), CategoryID: 7}
		if _, err := c.CreatePet(context.Background(), pet); err != nil {
			log.Fatal(err)
		}
		added++
	}
	fmt.Println(added, "added")
	// Output: 100 added
}

// smallKey is a key with two requests a minute.
func smallKey() string {
	c, err := client.New(address, apiKey)
	if err != nil {
		log.Fatal(err)
	}
	key, err := c.CreateKey(context.Background(), client.NewKey{
		Name: "small", Plan: animalstore.PlanEnterprise, Limits: animalstore.Limits{PerMinute: 2, PerDay: 100},
	})
	if err != nil {
		log.Fatal(err)
	}
	return key.Secret
}
