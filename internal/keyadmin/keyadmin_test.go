package keyadmin_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/client/clienttest"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/keyadmin"
	"animalstore/internal/keys"
)

var (
	_ keyadmin.Keys = keyadmin.Database{}
	_ keyadmin.Keys = keyadmin.Server{}
)

// places returns the keys of an empty database and of a server.
func places(t *testing.T) map[string]keyadmin.Keys {
	t.Helper()
	store, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { store.Close() })
	server := clienttest.New(t)
	admin := server.NewKey(animalstore.PlanBusiness, animalstore.Limits{}, animalstore.Read|animalstore.Write|animalstore.Admin)
	return map[string]keyadmin.Keys{"database": keyadmin.Database{Store: store}, "server": keyadmin.Server{Client: server.NewClient(admin)}}
}

// TestKeys takes a key through its life: it is the same in a database and over HTTP.
func TestKeys(t *testing.T) {
	for name, all := range places(t) {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			k := animalstore.NewKey{Name: "shop", Plan: animalstore.PlanFree, Permissions: animalstore.Read, Environment: animalstore.Production}
			if err := k.Validate(); err != nil {
				t.Fatal(err)
			}
			created, secret, err := all.Create(ctx, k)
			if err != nil || created.Name != "shop" || keys.Environment(secret) != animalstore.Production {
				t.Fatalf("Create: got %+v and error %v, want the key and its secret", created, err)
			}
			for latest, err := range all.List(ctx, 1) {
				if err != nil || latest.ID != created.ID {
					t.Errorf("List: got %+v and error %v first, want the latest key", latest, err)
				}
				break
			}
			if rotated, again, err := all.Rotate(ctx, created.ID, time.Hour); err != nil || rotated.ID != created.ID || again == secret || !strings.HasPrefix(again, "ast_live_") {
				t.Errorf("Rotate: got key %d and error %v, want key %d with another secret", rotated.ID, err, created.ID)
			}
			if changed, err := all.Update(ctx, created.ID, animalstore.KeyPatch{Plan: new(animalstore.PlanEnterprise), Limits: &animalstore.Limits{PerMinute: 7, PerDay: 70}}); err != nil || changed.Limits.PerDay != 70 {
				t.Errorf("Update: got %+v and error %v, want 70 requests a day", changed, err)
			}
			if _, _, err := all.Unban(ctx, created.ID); err != nil {
				t.Errorf("Unban: got %v, want no error", err)
			}
			if _, usage, err := all.Usage(ctx, created.ID, 24); err != nil || len(usage) != 0 {
				t.Errorf("Usage: got %v and error %v, want none", usage, err)
			}
			if revoked, err := all.Revoke(ctx, created.ID); err != nil || revoked.State(time.Now()) != "revoked" {
				t.Errorf("Revoke: got %+v and error %v, want a revoked key", revoked, err)
			}
			shown, limits, err := all.Show(ctx, created.ID)
			if err != nil || shown.State(time.Now()) != "revoked" || (limits != nil) != (name == "database") {
				t.Errorf("Show: got %+v, limits %v and error %v, want a revoked key, with limits only from a database", shown, limits, err)
			}
			if _, err := all.Update(ctx, created.ID, animalstore.KeyPatch{Plan: new(animalstore.PlanFree)}); err == nil {
				t.Error("Update of a revoked key: got no error, want one")
			}
			if _, _, err := all.Show(ctx, 4711); err == nil {
				t.Error("Show of an unknown key: got no error, want one")
			}
		})
	}
}

// TestImportTwice: a secret belongs to one key.
func TestImportTwice(t *testing.T) {
	database := places(t)["database"].(keyadmin.Database)
	k := animalstore.NewKey{Name: "legacy", Plan: animalstore.PlanFree, Permissions: animalstore.Read, Environment: animalstore.Production}
	if _, err := database.Import(t.Context(), k, "a-key-that-was-created-elsewhere"); err != nil {
		t.Fatal(err)
	}
	_, err := database.Import(t.Context(), k, "a-key-that-was-created-elsewhere")
	if err == nil || err.Error() != "this key already exists in the database" {
		t.Errorf("got %v, want an error that says the key exists", err)
	}
}
