package main

import (
	"context"
	"errors"
	"log"
	"os"
	"regexp"
	"slices"
	"time"

	"scenario/animalstore"
)

const category = 5

func connect(key string) *animalstore.APIClient {
	config := animalstore.NewConfiguration()
	config.Servers = animalstore.ServerConfigurations{{URL: os.Getenv("ANIMALSTORE_URL")}}
	config.AddDefaultHeader("Authorization", "Bearer "+key)
	return animalstore.NewAPIClient(config)
}

func main() {
	ctx, client := context.Background(), connect(os.Getenv("ANIMALSTORE_API_KEY"))
	id := changePets(ctx, client.PetsAPI, client.OrdersAPI)
	listAllPages(ctx, client.PetsAPI)

	_, _, err := client.PetsAPI.GetPet(ctx, id).Execute()
	check(codeOf(err) == "pet_not_found", "get a removed pet", err)

	exceedLimit(ctx, client.KeysAPI)
}

// changePets creates, lists, gets, changes, orders and deletes pets.
func changePets(ctx context.Context, pets *animalstore.PetsAPIService, orders *animalstore.OrdersAPIService) int64 {
	var ids []int64
	for _, name := range []string{"Ada", "Bo", "Cleo", "Dot", "Eve"} {
		pet, _, err := pets.CreatePet(ctx).PetInput(*animalstore.NewPetInput(name, category)).Execute()
		check(err == nil, "create", err)
		ids = append(ids, pet.Id)
	}
	id := ids[0]
	both, _, err := pets.ListPets(ctx).Id(ids[:2]).Status(animalstore.PETSTATUS_AVAILABLE).Execute()
	check(err == nil && len(both) == 2 && both[1].Id == id, "list", err)
	pet, _, err := pets.GetPet(ctx, id).Execute()
	check(err == nil && pet.Name == "Ada", "get", err)

	name := "Ada L."
	pet, _, err = pets.UpdatePet(ctx, id).PetPatch(animalstore.PetPatch{Name: &name}).Execute()
	check(err == nil && pet.Name == name, "patch", err)
	order, _, err := orders.PlaceOrder(ctx).OrderInput(*animalstore.NewOrderInput(id)).Execute()
	check(err == nil && !order.CreatedAt.IsZero(), "order", err)
	order, _, err = orders.UpdateOrder(ctx, order.Id).OrderPatch(animalstore.OrderPatch{Status: animalstore.ORDERSTATUS_CANCELLED.Ptr()}).Execute()
	check(err == nil && order.Status == animalstore.ORDERSTATUS_CANCELLED, "cancel", err)
	res, err := pets.DeletePet(ctx, id).Execute()
	check(err == nil && res.StatusCode == 204, "delete", err)
	return id
}

var next = regexp.MustCompile(`[?&]cursor=([^&>]+)[^>]*>; rel="next"`)

// listAllPages follows the cursor in the Link header.
func listAllPages(ctx context.Context, pets *animalstore.PetsAPIService) {
	var names []string
	for request := pets.ListPets(ctx).CategoryId(category).Limit(2); ; {
		page, res, err := request.Execute()
		check(err == nil, "list a page", err)
		for _, pet := range page {
			names = append(names, pet.Name)
		}
		cursor := next.FindStringSubmatch(res.Header.Get("Link"))
		if cursor == nil {
			break
		}
		request = request.Cursor(cursor[1])
	}
	check(slices.Equal(names, []string{"Eve", "Dot", "Cleo", "Bo"}), "all pages", nil)
}

// exceedLimit creates a key with one request a minute and makes two with it.
func exceedLimit(ctx context.Context, keys *animalstore.KeysAPIService) {
	input := animalstore.NewKeyInput("limited")
	input.SetPlan(animalstore.PLAN_ENTERPRISE)
	input.SetLimits(*animalstore.NewKeyLimits(1, 10))
	input.SetExpiresAt(time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC))
	key, _, err := keys.CreateKey(ctx).KeyInput(*input).Execute()
	check(err == nil && key.ExpiresAt.Get() != nil, "create a key", err)
	var patch animalstore.KeyPatch
	patch.SetExpiresAtNil()
	forever, _, err := keys.UpdateKey(ctx, key.Id).KeyPatch(patch).Execute()
	check(err == nil && forever.ExpiresAt.Get() == nil, "set a field to null", err)

	limited := connect(key.Secret).PetsAPI
	_, _, err = limited.ListPets(ctx).Execute()
	check(err == nil, "list once", err)
	_, res, err := limited.ListPets(ctx).Execute()
	check(codeOf(err) == "rate_limit_exceeded" && res.StatusCode == 429 && res.Header.Get("Retry-After") != "", "exceed the limit", err)
}

// codeOf returns the code of an error of the API.
func codeOf(err error) string {
	var failed *animalstore.GenericOpenAPIError
	if errors.As(err, &failed) {
		if body, ok := failed.Model().(animalstore.Error); ok {
			return body.Code
		}
	}
	return ""
}

func check(ok bool, step string, err error) {
	if !ok {
		log.Fatalf("%s: %v", step, err)
	}
}
