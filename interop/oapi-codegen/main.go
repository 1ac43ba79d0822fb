package main

import (
	"context"
	"log"
	"net/http"
	"os"
	"regexp"
	"slices"
	"time"

	"scenario/animalstore"

	"github.com/oapi-codegen/nullable"
)

const category = 6

func connect(key string) *animalstore.ClientWithResponses {
	client, err := animalstore.NewClientWithResponses(os.Getenv("ANIMALSTORE_URL"),
		animalstore.WithRequestEditorFn(func(_ context.Context, r *http.Request) error {
			r.Header.Set("Authorization", "Bearer "+key)
			return nil
		}))
	check(err == nil, "connect", err)
	return client
}

func main() {
	ctx, client := context.Background(), connect(os.Getenv("ANIMALSTORE_API_KEY"))
	id := changePets(ctx, client)
	listAllPages(ctx, client)

	gone, err := client.GetPetWithResponse(ctx, id, nil)
	check(err == nil && gone.JSON404 != nil && gone.JSON404.Code == "pet_not_found", "get a removed pet", err)

	exceedLimit(ctx, client)
}

// changePets creates, lists, gets, changes, orders and deletes pets.
func changePets(ctx context.Context, client *animalstore.ClientWithResponses) int64 {
	var ids []int64
	for _, name := range []string{"Ada", "Bo", "Cleo", "Dot", "Eve"} {
		created, err := client.CreatePetWithResponse(ctx, nil, animalstore.NewPet{Name: name, CategoryId: category})
		check(err == nil && created.JSON201 != nil, "create", err)
		ids = append(ids, created.JSON201.Id)
	}
	id, both := ids[0], ids[:2]
	list, err := client.ListPetsWithResponse(ctx, &animalstore.ListPetsParams{Id: &both})
	check(err == nil && list.JSON200 != nil && len(*list.JSON200) == 2, "list", err)
	pet, err := client.GetPetWithResponse(ctx, id, nil)
	check(err == nil && pet.JSON200 != nil && pet.JSON200.Name == "Ada", "get", err)

	name := "Ada L."
	renamed, err := client.UpdatePetWithResponse(ctx, id, nil, animalstore.PetPatch{Name: &name})
	check(err == nil && renamed.JSON200 != nil && renamed.JSON200.Name == name, "patch", err)
	order, err := client.PlaceOrderWithResponse(ctx, nil, animalstore.NewOrder{PetId: id})
	check(err == nil && order.JSON201 != nil && !order.JSON201.CreatedAt.IsZero(), "order", err)
	cancelled, err := client.UpdateOrderWithResponse(ctx, order.JSON201.Id, nil, animalstore.OrderPatch{Status: new(animalstore.OrderStatus("cancelled"))})
	check(err == nil && cancelled.JSON200 != nil && cancelled.JSON200.Status == "cancelled", "cancel", err)
	removed, err := client.DeletePetWithResponse(ctx, id, nil)
	check(err == nil && removed.StatusCode() == 204, "delete", err)
	return id
}

var next = regexp.MustCompile(`[?&]cursor=([^&>]+)[^>]*>; rel="next"`)

// listAllPages follows the cursor in the Link header.
func listAllPages(ctx context.Context, client *animalstore.ClientWithResponses) {
	var names []string
	limit, wanted := 2, int64(category)
	for query := (animalstore.ListPetsParams{CategoryId: &wanted, Limit: &limit}); ; {
		page, err := client.ListPetsWithResponse(ctx, &query)
		check(err == nil && page.JSON200 != nil, "list a page", err)
		for _, pet := range *page.JSON200 {
			names = append(names, pet.Name)
		}
		cursor := next.FindStringSubmatch(page.HTTPResponse.Header.Get("Link"))
		if cursor == nil {
			break
		}
		query.Cursor = &cursor[1]
	}
	check(slices.Equal(names, []string{"Eve", "Dot", "Cleo", "Bo"}), "all pages", nil)
}

// exceedLimit creates a key with one request a minute and makes two with it.
func exceedLimit(ctx context.Context, client *animalstore.ClientWithResponses) {
	plan := animalstore.Plan("enterprise")
	key, err := client.CreateKeyWithResponse(ctx, animalstore.NewKey{
		Name: "limited", Plan: &plan, Limits: &animalstore.KeyLimits{PerMinute: 1, PerDay: 10},
		ExpiresAt: nullable.NewNullableWithValue(time.Date(2099, 1, 1, 0, 0, 0, 0, time.UTC)),
	})
	check(err == nil && key.JSON201 != nil && !key.JSON201.ExpiresAt.IsNull(), "create a key", err)
	forever, err := client.UpdateKeyWithResponse(ctx, key.JSON201.Id, nil, animalstore.KeyPatch{ExpiresAt: nullable.NewNullNullable[time.Time]()})
	check(err == nil && forever.JSON200 != nil && forever.JSON200.ExpiresAt.IsNull(), "set a field to null", err)

	limited := connect(key.JSON201.Secret)
	_, err = limited.ListPetsWithResponse(ctx, nil)
	check(err == nil, "list once", err)
	refused, err := limited.ListPetsWithResponse(ctx, nil)
	check(err == nil && refused.JSON429 != nil && refused.JSON429.Code == "rate_limit_exceeded" &&
		refused.HTTPResponse.Header.Get("Retry-After") != "", "exceed the limit", err)
}

func check(ok bool, step string, err error) {
	if !ok {
		log.Fatalf("%s: %v", step, err)
	}
}
