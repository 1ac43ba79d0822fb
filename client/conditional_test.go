package client_test

import (
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
