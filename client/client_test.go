package client_test

import (
	"testing"

	"animalstore"
	"animalstore/client"
	"animalstore/client/clienttest"
)

// TestSmoke walks through one life of an animal.
func TestSmoke(t *testing.T) {
	store := clienttest.New(t)
	c := store.Client
	ctx := t.Context()
	pet, err := c.CreatePet(ctx, animalstore.NewPet{Name: "Rex", CategoryID: 7})
	if err != nil {
		t.Fatal(err)
	}
	var m client.Meta
	pet, err = c.UpdatePet(ctx, pet.ID, client.PetPatch{Name: new("Rexy")}, client.ReadMeta(&m))
	if err != nil || pet.Name != "Rexy" {
		t.Fatal(pet, err)
	}
	t.Logf("%+v", m)
	order, err := c.PlaceOrder(ctx, pet.ID)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(order)
	k, err := c.CreateKey(ctx, client.NewKey{Name: "x"})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", k)
	l, err := c.GetLimits(ctx)
	t.Logf("%+v %v", l, err)
	u, err := c.GetUsage(ctx, 0)
	t.Logf("%+v %v", u, err)
	for k, err := range c.ListKeys(ctx, client.PageQuery{PageSize: 1}) {
		t.Logf("%+v %v", k, err)
	}
	_, err = c.UpdateOrder(ctx, order.ID, animalstore.OrderDelivered)
	t.Log(err)
	_, err = c.FindPet(ctx, 99)
	t.Log(err)
}
