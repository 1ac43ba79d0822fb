package client_test

import (
	"errors"
	"testing"

	"animalstore"
	"animalstore/client"
	"animalstore/client/clienttest"
)

// TestIfMatchOnKeys: every change of a key can be made conditional on the key's state
// as read, and using the key in between doesn't count as a change.
func TestIfMatchOnKeys(t *testing.T) {
	store := clienttest.New(t)
	c, ctx := store.Client, t.Context()
	made, err := c.CreateKey(ctx, client.NewKey{Name: "shop"})
	if err != nil {
		t.Fatal(err)
	}
	id := made.ID
	changes := map[string]func(client.CallOption) error{
		"updateKey": func(o client.CallOption) error {
			return only(c.UpdateKey(ctx, id, animalstore.KeyPatch{Name: new("till")}, o))
		},
		"unbanKey":  func(o client.CallOption) error { return only(c.UnbanKey(ctx, id, o)) },
		"rotateKey": func(o client.CallOption) error { return only(c.RotateKey(ctx, id, 0, o)) },
		"revokeKey": func(o client.CallOption) error { return c.RevokeKey(ctx, id, o) },
	}
	for _, name := range []string{"unbanKey", "rotateKey", "updateKey", "revokeKey"} {
		var seen client.Meta
		before, err := c.GetKey(ctx, id, client.ReadMeta(&seen))
		if err != nil {
			t.Fatal(err)
		}
		wantCode(t, changes[name](client.IfMatch(`"x"`)), animalstore.PreconditionFailed)
		if after, err := c.GetKey(ctx, id); err != nil || after != before {
			t.Errorf("%s with another tag: got %+v, %v, want %+v", name, after, err, before)
		}
		if err := changes[name](client.IfMatch(seen.ETag)); err != nil {
			t.Errorf("%s with the tag of the key: %v", name, err)
		}
	}
}

// TestLostRevocation: a key revoked by an attempt without a response has another ETag,
// so a refusal of the next attempt doesn't prove that nothing was done.
func TestLostRevocation(t *testing.T) {
	refused := response(412, `{"code":"precondition_failed","message":"it has changed","status":412}`)
	c, _ := scriptedClient(t, []reply{response(503, `{"code":"unavailable","message":"lost","status":503}`), refused})
	err := c.RevokeKey(t.Context(), 1, client.IfMatch(`"a"`))
	wantCode(t, err, animalstore.PreconditionFailed)
	if !errors.Is(err, client.ErrOutcomeUnknown) {
		t.Errorf("got %v, want ErrOutcomeUnknown", err)
	}
	c, _ = scriptedClient(t, []reply{refused})
	if err := c.RevokeKey(t.Context(), 1, client.IfMatch(`"a"`)); errors.Is(err, client.ErrOutcomeUnknown) {
		t.Errorf("got %v from the only attempt, want no ErrOutcomeUnknown", err)
	}
}

// TestPutOnlyNew: a category can be created without the risk of renaming an existing
// one.
func TestPutOnlyNew(t *testing.T) {
	c, ctx := clienttest.New(t).Client, t.Context()
	if _, err := c.PutCategory(ctx, animalstore.Category{ID: 7, Name: "dogs"}, client.IfNoneMatch("*")); err != nil {
		t.Error(err)
	}
	_, err := c.PutCategory(ctx, animalstore.Category{ID: 7, Name: "cats"}, client.IfNoneMatch("*"))
	wantCode(t, err, animalstore.PreconditionFailed)
	if got, err := c.GetCategory(ctx, 7); err != nil || got.Name != "dogs" {
		t.Errorf("got %+v, %v, want dogs", got, err)
	}
}
