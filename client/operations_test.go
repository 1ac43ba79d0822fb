package client_test

import (
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/client/clienttest"
)

func only[T any](_ T, err error) error { return err }

// TestKeyComesBack: every field of a key survives the round trip. The walk of
// clients/conformance has the other resources, and changes a key.
func TestKeyComesBack(t *testing.T) {
	c, ctx := clienttest.New(t).Client, t.Context()
	until := animalstore.At(time.Now().Add(time.Hour))
	made, err := c.CreateKey(ctx, client.NewKey{
		Name: "shop", Plan: animalstore.PlanEnterprise, Limits: animalstore.Limits{PerMinute: 5, PerDay: 50},
		Permissions: animalstore.Read | animalstore.Admin, ExpiresAt: until,
	})
	if err != nil {
		t.Fatal(err)
	}
	want := animalstore.Key{
		ID: 2, Name: "shop", Plan: animalstore.PlanEnterprise, Limits: animalstore.Limits{PerMinute: 5, PerDay: 50},
		Permissions: animalstore.Read | animalstore.Admin, Environment: animalstore.Production,
		CreatedAt: made.CreatedAt, ExpiresAt: until,
	}
	if made.Key != want || made.CreatedAt.IsZero() || !strings.HasPrefix(made.Secret, "ast_live_") {
		t.Errorf("got %+v, want %+v and a secret", made.Key, want)
	}
	if got, err := c.GetKey(ctx, made.ID); err != nil || got != want {
		t.Errorf("got %+v, %v, want %+v", got, err, want)
	}
}

// TestTextsArriveAsTheyAre: a text that isn't valid UTF-8 is an error, because
// encoding/json would silently replace the invalid bytes.
func TestTextsArriveAsTheyAre(t *testing.T) {
	c, s := scriptedClient(t, []reply{response(200, petJSON)})
	broken := "R\xffx"
	for what, err := range map[string]error{
		"createPet":   only(c.CreatePet(t.Context(), animalstore.NewPet{Name: broken})),
		"updatePet":   only(c.UpdatePet(t.Context(), 1, animalstore.PetPatch{Name: &broken})),
		"putCategory": only(c.PutCategory(t.Context(), animalstore.Category{Name: broken})),
		"createKey":   only(c.CreateKey(t.Context(), client.NewKey{Name: broken})),
		"updateKey":   only(c.UpdateKey(t.Context(), 1, animalstore.KeyPatch{Name: &broken})),
		"placeOrder":  only(c.PlaceOrder(t.Context(), animalstore.NewOrder{Note: animalstore.OptionalText(`\` + "\xff")})),
	} {
		wantCode(t, err, animalstore.ValidationFailed)
		if err != nil && !strings.HasPrefix(err.Error(), what+": ") {
			t.Errorf("got %q, want it to begin with %s", err, what)
		}
	}
	if len(s.sent) != 0 {
		t.Errorf("sent %d requests, want none", len(s.sent))
	}
	for _, valid := range []string{"\ufffd", `\ufffd`, `\\ufffd`} {
		if _, err := c.CreatePet(t.Context(), animalstore.NewPet{Name: valid}); err != nil {
			t.Errorf("%q: %v", valid, err)
		}
	}
}

// TestInvalidQueries: a list with an invalid query is one iteration with an error.
func TestInvalidQueries(t *testing.T) {
	c := clienttest.New(t).Client
	n := 0
	for _, err := range c.ListPets(t.Context(), animalstore.PetQuery{}, client.PageSize(101)) {
		n++
		wantCode(t, err, animalstore.InvalidParameter)
	}
	if n != 1 {
		t.Errorf("got %d iterations, want one with an error", n)
	}
}
