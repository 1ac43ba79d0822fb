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

// TestWhatComesBack: every field of every type survives the round trip.
func TestWhatComesBack(t *testing.T) {
	store := clienttest.New(t)
	c, ctx := store.Client, t.Context()
	name := "<Rex> & \u2028 \"Größe\" 🐈"
	pet, err := c.CreatePet(ctx, animalstore.NewPet{Name: name, CategoryID: -1 << 63, Status: animalstore.PetPending})
	if want := (animalstore.Pet{ID: 1, Name: name, CategoryID: -1 << 63, Status: animalstore.PetPending}); err != nil || pet != want {
		t.Errorf("got %+v, %v, want %+v", pet, err, want)
	}
	pet, err = c.UpdatePet(ctx, pet.ID, animalstore.PetPatch{CategoryID: new(int64(0)), Status: new(animalstore.PetAvailable)})
	if want := (animalstore.Pet{ID: 1, Name: name, Status: animalstore.PetAvailable}); err != nil || pet != want {
		t.Errorf("got %+v, %v, want %+v", pet, err, want)
	}
	order, err := c.PlaceOrder(ctx, pet.ID)
	if err != nil || order.ID != 1 || order.PetID != 1 || order.Status != animalstore.OrderPlaced || time.Since(order.CreatedAt.Time) > time.Minute || order.CreatedAt != order.UpdatedAt {
		t.Errorf("got %+v, %v, want a new order", order, err)
	}
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
	changed, err := c.UpdateKey(ctx, made.ID, animalstore.KeyPatch{Plan: new(animalstore.PlanFree), Permissions: new(animalstore.Write), ExpiresAt: new(animalstore.Time{})})
	want.Plan, want.Limits, want.Permissions, want.ExpiresAt = animalstore.PlanFree, animalstore.Limits{PerMinute: 60, PerDay: 1000}, animalstore.Write, animalstore.Time{}
	if err != nil || changed != want {
		t.Errorf("got %+v, %v, want %+v", changed, err, want)
	}
	rotated, err := c.RotateKey(ctx, made.ID, 0)
	if err != nil || rotated.Key != want || rotated.Secret == made.Secret || rotated.Secret == "" {
		t.Errorf("got %+v, %v, want %+v and another secret", rotated.Key, err, want)
	}
	if _, err := store.NewClient(rotated.Secret).CreatePet(ctx, animalstore.NewPet{Name: "Mia"}); err != nil {
		t.Errorf("with the new secret: got %v, want success", err)
	}
	if err := c.RevokeKey(ctx, made.ID); err != nil {
		t.Error(err)
	}
	if got, err := c.GetKey(ctx, made.ID); err != nil || got.RevokedAt.IsZero() {
		t.Errorf("got %+v, %v, want it revoked", got, err)
	}
	limits, err := c.GetLimits(ctx)
	if err != nil || limits.Plan != animalstore.PlanEnterprise || limits.Minute.Remaining != limits.Day.Remaining || limits.Strikes.Threshold < 100 || !limits.Ban.Until.IsZero() {
		t.Errorf("got %+v, %v, want the limits of an unused key", limits, err)
	}
	usage, err := c.GetUsage(ctx, 2)
	if err != nil || len(usage) == 0 || usage[0].Hour.IsZero() || usage[0].Admitted == 0 {
		t.Errorf("got %+v, %v, want this hour's requests", usage, err)
	}
	category, err := c.PutCategory(ctx, animalstore.Category{ID: 7, Name: "dogs"})
	if want := (animalstore.Category{ID: 7, Name: "dogs"}); err != nil || category != want {
		t.Errorf("got %+v, %v, want %+v", category, err, want)
	}
}

// TestNamesArriveAsTheyAre: a name that isn't valid UTF-8 is an error, because
// encoding/json would silently replace the invalid bytes.
func TestNamesArriveAsTheyAre(t *testing.T) {
	c, s := scriptedClient(t, []reply{response(200, petJSON)})
	broken := "R\xffx"
	for what, err := range map[string]error{
		"createPet":   only(c.CreatePet(t.Context(), animalstore.NewPet{Name: broken})),
		"updatePet":   only(c.UpdatePet(t.Context(), 1, animalstore.PetPatch{Name: &broken})),
		"putCategory": only(c.PutCategory(t.Context(), animalstore.Category{Name: broken})),
		"createKey":   only(c.CreateKey(t.Context(), client.NewKey{Name: broken})),
		"updateKey":   only(c.UpdateKey(t.Context(), 1, animalstore.KeyPatch{Name: &broken})),
	} {
		wantCode(t, err, animalstore.ValidationFailed)
		if err != nil && !strings.HasPrefix(err.Error(), what+": ") {
			t.Errorf("got %q, want it to begin with %s", err, what)
		}
	}
	if len(s.sent) != 0 {
		t.Errorf("sent %d requests, want none", len(s.sent))
	}
}
