package dbtest

import (
	"crypto/sha256"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

var noon = animalstore.At(time.Date(2026, 11, 15, 12, 0, 0, 123e6, time.UTC))

func hashOf(secret string) db.KeyHash { return sha256.Sum256([]byte(secret)) }

func plainKey(t *testing.T, name string) animalstore.NewKey {
	t.Helper()
	k := animalstore.NewKey{Name: name, Plan: animalstore.PlanFree, Permissions: animalstore.Read, Environment: animalstore.Production}
	if err := k.Validate(); err != nil {
		t.Fatal(err)
	}
	return k
}

func mustCreateKey(t *testing.T, d db.DB, k animalstore.NewKey, secret string) animalstore.Key {
	t.Helper()
	key, err := d.CreateKey(t.Context(), k, hashOf(secret), noon)
	if err != nil {
		t.Fatalf("CreateKey(%+v): %v", k, err)
	}
	return key
}

func mustKeys(t *testing.T, d db.DB) []animalstore.Key {
	t.Helper()
	keys, err := d.Keys(t.Context(), db.Page{Limit: 100})
	if err != nil {
		t.Fatalf("Keys: %v", err)
	}
	return keys
}

func mustUpdateKey(t *testing.T, d db.DB, id int64, change func(*animalstore.Key)) animalstore.Key {
	t.Helper()
	key, err := d.UpdateKey(t.Context(), id, noon, func(k *animalstore.Key, _ bool) error { change(k); return nil })
	if err != nil {
		t.Fatalf("UpdateKey(%d): %v", id, err)
	}
	return key
}

func mustRevoke(t *testing.T, d db.DB, id int64) animalstore.Key {
	t.Helper()
	return mustUpdateKey(t, d, id, func(k *animalstore.Key) { k.Revoke(noon) })
}

// mustBan saves a ban of a key.
func mustBan(t *testing.T, d db.DB, id int64, at animalstore.Time, ban animalstore.Ban) {
	t.Helper()
	state := db.LimitState{BannedAt: at.Milli(), BannedUntil: ban.Until.Milli(), BanLevel: ban.Level}
	if err := d.SaveLimitStates(t.Context(), []db.KeyLimitState{{KeyID: id, LimitState: state}}); err != nil {
		t.Fatal(err)
	}
}

func wantFound(t *testing.T, d db.DB, secret string, want animalstore.Key) {
	t.Helper()
	got, found, err := d.KeyByHash(t.Context(), hashOf(secret))
	if err != nil || !found || !reflect.DeepEqual(got, want) {
		t.Errorf("KeyByHash(%s) = %+v, %v, %v, want %+v", secret, got, found, err, want)
	}
}

func keyReadsBack(t *testing.T, d db.DB) {
	for i, k := range []animalstore.NewKey{
		{Name: "owner", Plan: animalstore.PlanBusiness, Permissions: animalstore.Read | animalstore.Write | animalstore.Admin, Environment: animalstore.Production},
		{Name: "Büro 🦊", Plan: animalstore.PlanFree, Permissions: animalstore.Read, Environment: animalstore.Staging},
		{Name: "until", Plan: animalstore.PlanPro, Permissions: animalstore.Write, Environment: animalstore.Production, ExpiresAt: animalstore.At(noon.Add(time.Millisecond))},
		{Name: "big", Plan: animalstore.PlanEnterprise, Limits: animalstore.Limits{PerMinute: 1, PerDay: 1 << 62}, Permissions: animalstore.Admin, Environment: animalstore.Staging},
		{Name: "website", Plan: animalstore.PlanFree, Permissions: animalstore.PetsRead | animalstore.OrdersWrite, Networks: "203.0.113.0/24,2001:db8::/32", Environment: animalstore.Production},
		{Name: "all", Plan: animalstore.PlanFree, Permissions: animalstore.AllPermissions, Environment: animalstore.Production},
	} {
		if err := k.Validate(); err != nil {
			t.Fatal(err)
		}
		secret := fmt.Sprint("secret ", i)
		created := mustCreateKey(t, d, k, secret)
		want := animalstore.Key{
			ID: created.ID, Name: k.Name, Plan: k.Plan, Limits: k.Limits, Permissions: k.Permissions, Networks: k.Networks,
			Environment: k.Environment, CreatedAt: noon, ExpiresAt: k.ExpiresAt,
		}
		if created.ID <= 0 || !reflect.DeepEqual(created, want) {
			t.Errorf("CreateKey(%+v) = %+v, want %+v with a positive id", k, created, want)
		}
		wantFound(t, d, secret, want)
	}
}

func keyLists(t *testing.T, d db.DB) {
	if got := mustKeys(t, d); got == nil || len(got) != 0 {
		t.Errorf("the keys of a new database are %#v, want an empty list, not nil", got)
	}
	var all []animalstore.Key // newest first
	for i := range 7 {
		all = slices.Insert(all, 0, mustCreateKey(t, d, plainKey(t, fmt.Sprint("key ", 9-i)), fmt.Sprint(i)))
	}
	all[3] = mustRevoke(t, d, all[3].ID)
	if got := mustKeys(t, d); !slices.Equal(got, all) {
		t.Errorf("Keys\ngot  %+v\nwant %+v", got, all)
	}
	for from := range all {
		for _, limit := range []int{1, 3, 10} {
			got, err := d.Keys(t.Context(), db.Page{After: all[from].ID, Limit: limit})
			if want := all[from+1 : min(from+1+limit, len(all))]; err != nil || !slices.Equal(got, want) {
				t.Errorf("Keys before %d, limit %d: got %+v, %v, want %+v", all[from].ID, limit, got, err, want)
			}
		}
	}
}

func firstKeyOnlyOnce(t *testing.T, d db.DB) {
	if created, err := d.CreateFirstKey(t.Context(), plainKey(t, "owner"), hashOf("owner"), noon); err != nil || !created {
		t.Fatalf("CreateFirstKey on an empty database = %v, %v, want true", created, err)
	}
	owner := mustKeys(t, d)[0]
	if owner.Name != "owner" || owner.CreatedAt != noon {
		t.Errorf("the first key is %+v", owner)
	}
	wantFound(t, d, "owner", owner)
	mustRevoke(t, d, owner.ID)
	// A revoked key counts: revoking the last key must not create a new owner at the next
	// start.
	if created, err := d.CreateFirstKey(t.Context(), plainKey(t, "second"), hashOf("second"), noon); err != nil || created {
		t.Errorf("CreateFirstKey after a revoked one = %v, %v, want false", created, err)
	}
	if keys := mustKeys(t, d); len(keys) != 1 {
		t.Errorf("got %d keys, want 1: %+v", len(keys), keys)
	}
}

func firstKeyRace(t *testing.T, d db.DB) {
	var made, winner atomic.Int64
	k := plainKey(t, "owner")
	together(t, 50, func(i int) error {
		created, err := d.CreateFirstKey(t.Context(), k, hashOf(fmt.Sprint(i)), noon)
		if created {
			made.Add(1)
			winner.Store(int64(i))
		}
		return err
	})
	keys := mustKeys(t, d)
	if made.Load() != 1 || len(keys) != 1 {
		t.Fatalf("%d callers created the key and there are %d keys, want 1 and 1", made.Load(), len(keys))
	}
	wantFound(t, d, fmt.Sprint(winner.Load()), keys[0])
}
