//go:build unix

package transfer_test

import (
	"bytes"
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/db/postgres"
	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/db/sqlite"
)

func TestMain(m *testing.M) {
	code := m.Run()
	pgtest.Close()
	os.Exit(code)
}

func openSource(t *testing.T, url string, alone bool) db.Source {
	t.Helper()
	var source db.Source
	var err error
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		source, err = sqlite.OpenSource(t.Context(), path, alone)
	} else {
		source, err = postgres.OpenSource(t.Context(), url, alone)
	}
	if err != nil {
		t.Fatal(err)
	}
	return source
}

func openTarget(t *testing.T, url string) (db.Target, error) {
	t.Helper()
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		return sqlite.OpenTarget(t.Context(), path)
	}
	return postgres.OpenTarget(t.Context(), url)
}

// withStore calls f with an open store.
func withStore(t *testing.T, url string, f func(db.DB)) {
	t.Helper()
	var store db.DB
	var err error
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		store, err = sqlite.Open(t.Context(), path, sqlite.Options{NoSync: true})
	} else {
		store, err = postgres.Open(t.Context(), url, postgres.Options{Timeout: time.Minute})
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}()
	f(store)
}

// newFile returns the URL of a SQLite file that doesn't exist yet.
func newFile(t *testing.T) string { return "sqlite:" + filepath.Join(t.TempDir(), "store.db") }

// newStore returns the URL of an empty database.
var newStore = newFile

// TestOnPostgres_Slow repeats the tests that use newStore.
func TestOnPostgres_Slow(t *testing.T) {
	newStore = func(t *testing.T) string { return pgtest.Shared(t).NewDatabase(t, "") }
	t.Cleanup(func() { newStore = newFile })
	t.Run("CheckStops", TestCheckStops)
	t.Run("MoveOfAnEmptyStore", TestMoveOfAnEmptyStore)
	t.Run("MoveComparesWhatIsStored", TestMoveComparesWhatIsStored)
	t.Run("MoveCutOff", TestMoveCutOff)
}

// at returns a time that is not now.
func at(hours int) animalstore.Time {
	return animalstore.At(time.Date(2026, 5, 4, 3, 2, 1, 987e6, time.UTC).Add(time.Duration(hours) * time.Hour))
}

func must[T any](t *testing.T) func(T, error) T {
	return func(v T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// secretHash is the hash of the secret with this number.
func secretHash(n int) db.KeyHash { return db.KeyHash{31: byte(n), 0: byte(7 * n)} }

// oddSecrets is the number of key secrets in oddStore.
const oddSecrets = 7

// retried returns two writes for which oddStore contains idempotency records.
func retried(keyID int64) (pet, order *db.Idempotency) {
	pet = &db.Idempotency{KeyID: keyID, Operation: "POST /pets", Token: `~"\N'tok`, BodyHash: [32]byte{1, 0, 255}, At: at(1)}
	order = &db.Idempotency{KeyID: keyID, Operation: "POST /store/orders", Token: "a", BodyHash: [32]byte{}, At: at(2)}
	return pet, order
}

// oddStore fills a store with every kind of row, and with values that are easily lost
// or changed on the way to another database.
func oddStore(t *testing.T, store db.DB) {
	ctx := t.Context()
	check := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	names := []string{"Rex", "Zoë 🐕‍🦺", "\\N", "\\.", "a\tb\nc\r\\", `'"; DROP TABLE pets`, strings.Repeat("ü", 1024), "e\u0301", " \u2003x", "\x01\x7f", "Mr. O'Neil-Ünal", "..."}
	categories := []int64{math.MinInt64, -1, 0, 1, math.MaxInt64}
	var pets []int64
	for i, name := range names {
		pet, _, err := store.CreatePet(ctx, animalstore.NewPet{Name: name, CategoryID: categories[i%len(categories)]}, nil)
		check(err)
		pets = append(pets, pet.ID)
	}
	for id, name := range map[int64]string{math.MinInt64: "Vögel 🐦", 77: "of nobody"} {
		_, err := store.PutCategory(ctx, animalstore.Category{ID: id, Name: name}, func(*animalstore.Category) error { return nil })
		check(err)
	}
	for i, statuses := range [][]animalstore.OrderStatus{
		{}, {animalstore.OrderApproved}, {animalstore.OrderApproved, animalstore.OrderDelivered}, {animalstore.OrderCancelled}, {animalstore.OrderCancelled},
	} {
		order, _, err := store.PlaceOrder(ctx, animalstore.NewOrder{PetID: pets[i]}, at(i), nil)
		check(err)
		for j, status := range statuses {
			_, err := store.UpdateOrder(ctx, order.ID, func(o *animalstore.Order) error { return o.Move(status, at(10+i+j)) })
			check(err)
		}
	}
	remove := func(id int64) {
		check(store.DeletePet(ctx, id, func(*animalstore.Pet, bool) error { return nil }))
	}
	for i, size := range []int{1, db.PartSize + 7, 10, 10} {
		_, _, err := store.AddPhoto(ctx, db.NewPhoto{
			PetID: []int64{pets[5], pets[8], pets[8], pets[4]}[i], ContentType: "image/jpeg", Width: 1600, Height: i + 1,
			Image: bytes.Repeat([]byte("\x00\\N\xff'"), size)[:size], Thumbnail: []byte("\x00\n\x80"), At: at(i),
		}, math.MaxInt64, nil)
		check(err)
	}
	remove(pets[4]) // its order stays, its photo doesn't

	key := func(k animalstore.NewKey, secret, hours int) int64 {
		t.Helper()
		check(k.Validate())
		made, err := store.CreateKey(db.WithOrigin(ctx, db.Service), k, secretHash(secret), at(hours))
		check(err)
		return made.ID
	}
	all := animalstore.Read | animalstore.Write | animalstore.Admin
	owner := key(animalstore.NewKey{Name: "owner", Plan: animalstore.PlanBusiness, Permissions: all, Environment: animalstore.Production}, 1, 0)
	big := key(animalstore.NewKey{Name: "größer 🏢", Plan: animalstore.PlanEnterprise, Limits: animalstore.Limits{PerMinute: math.MaxInt64, PerDay: 1},
		Permissions: animalstore.PetsRead | animalstore.OrdersWrite, Networks: "203.0.113.0/24,2001:db8::/32", Environment: animalstore.Production, ExpiresAt: at(1000)}, 2, 1)
	revoked := key(animalstore.NewKey{Name: "revoked", Plan: animalstore.PlanFree, Permissions: animalstore.Write, Environment: animalstore.Staging}, 3, 2)
	expired := key(animalstore.NewKey{Name: "expired", Plan: animalstore.PlanPro, Permissions: all, Environment: animalstore.Staging, ExpiresAt: at(3)}, 4, 3)
	change := func(id int64, f func(*animalstore.Key)) {
		_, err := store.UpdateKey(ctx, id, at(5), func(k *animalstore.Key, _ bool) error { f(k); return nil })
		check(err)
	}
	change(revoked, func(k *animalstore.Key) { k.Revoke(at(6)) })
	change(expired, func(k *animalstore.Key) { k.UnbannedAt = at(7); k.Suspend(at(8)) })
	for secret := 5; secret <= oddSecrets; secret++ { // the old ones stay valid for a while
		_, err := store.RotateKey(ctx, big, db.KeyRotation{Hash: secretHash(secret), At: at(secret), OldUntil: at(24 * secret)}, nil)
		check(err)
	}
	check(store.SaveUsage(ctx, []db.KeyUsage{
		{KeyID: owner, Hour: at(0), Admitted: 1, Refused: 2, LastUsed: at(8)},
		{KeyID: owner, Hour: at(1), Admitted: math.MaxInt64, Refused: 0, LastUsed: at(9)},
		{KeyID: big, Hour: at(1), Admitted: 3, Refused: 4, LastUsed: at(10)},
	}))
	check(store.SaveLimitStates(ctx, []db.KeyLimitState{
		{KeyID: big, LimitState: db.LimitState{
			Minute: db.Window{Used: 1, End: 2, Refused: 3}, Day: db.Window{Used: 4, End: 5, Refused: 6},
			Strikes: 7, StrikesSince: 8, BannedAt: 9, BannedUntil: math.MaxInt64, BanLevel: 3,
		}},
		{KeyID: owner, LimitState: db.LimitState{Day: db.Window{Used: 99, End: at(24).Milli()}}},
	}))

	petRecord, orderRecord := retried(owner)
	byKey := db.WithOrigin(ctx, db.Origin{KeyID: owner, RequestID: `"\N'req`})
	pet, _, err := store.CreatePet(byKey, animalstore.NewPet{Name: "retried 🐈", CategoryID: -1}, petRecord)
	check(err)
	_, _, err = store.PlaceOrder(ctx, animalstore.NewOrder{PetID: pet.ID}, at(2), orderRecord)
	check(err)
	// The highest ids are unused, but must not be assigned again.
	last, _, err := store.CreatePet(ctx, animalstore.NewPet{Name: "last", CategoryID: 1}, nil)
	check(err)
	remove(last.ID)
	_, _, err = store.(db.Bulk).Reserve(ctx, 1000, 2000)
	check(err)
	oddWebhooks(t, store)
}

// content returns everything that callers can read from a store, as text.
func content(t *testing.T, url string) string {
	t.Helper()
	var text strings.Builder
	withStore(t, url, func(store db.DB) {
		enc := json.NewEncoder(&text)
		enc.SetIndent("", " ")
		put := func(what string, v any) {
			text.WriteString(what + " ")
			if err := enc.Encode(v); err != nil {
				t.Fatal(err)
			}
		}
		put("pets", must[[]animalstore.Pet](t)(store.Pets(t.Context(), animalstore.PetQuery{}, db.Page{Limit: 1000})))
		photos := must[[]animalstore.Photo](t)(store.Photos(t.Context(), animalstore.PhotoQuery{PetIDs: []int64{5, 6, 9}}, db.Page{Limit: 1000}))
		put("photos", photos)
		for _, p := range photos {
			put("image", must[db.Image](t)(store.Image(t.Context(), p.ID, db.Thumbnail)))
			put("part", must[[]byte](t)(store.ImagePart(t.Context(), p.ID, db.FullImage, 0)))
			put("thumbnail", must[[]byte](t)(store.ImagePart(t.Context(), p.ID, db.Thumbnail, 0)))
		}
		put("orders", must[[]animalstore.Order](t)(store.Orders(t.Context(), animalstore.OrderQuery{}, db.Page{Limit: 1000})))
		put("categories", must[[]animalstore.Category](t)(store.Categories(t.Context(), db.CategoryQuery{Limit: 1000})))
		keys := must[[]animalstore.Key](t)(store.Keys(t.Context(), db.Page{Limit: 1000}))
		for _, k := range keys {
			put("key", k)
			put("unbanned", k.UnbannedAt)
			put("limits", must[db.LimitState](t)(store.LimitState(t.Context(), k.ID)))
			put("usage", must[[]animalstore.Usage](t)(store.Usage(t.Context(), k.ID, animalstore.Time{})))
		}
		for secret := range oddSecrets + 1 {
			k, found, err := store.KeyByHash(t.Context(), secretHash(secret))
			if err != nil {
				t.Fatal(err)
			}
			put("secret", []any{secret, found, k.ID, k.SecretExpiresAt})
		}
		must[int64](t)(store.PublishEvents(t.Context()))
		events, _, err := store.Events(t.Context(), db.EventQuery{Limit: 1000})
		if err != nil {
			t.Fatal(err)
		}
		put("events", events)
	})
	return text.String()
}

// checkGoesOn fails the test unless the store assigns the right next ids and replays
// its idempotency records. It changes the store.
func checkGoesOn(t *testing.T, url string, wantPet, wantOrder, wantKey int64) {
	t.Helper()
	withStore(t, url, func(store db.DB) {
		petRecord, orderRecord := retried(1)
		pet, replayed, err := store.CreatePet(t.Context(), animalstore.NewPet{Name: "another", CategoryID: 5}, petRecord)
		if err != nil || !replayed || pet.Name != "retried 🐈" {
			t.Errorf("retried pet: got %+v, replayed %t, %v, want the stored one", pet, replayed, err)
		}
		if order, replayed, err := store.PlaceOrder(t.Context(), animalstore.NewOrder{PetID: 12345}, at(3), orderRecord); err != nil || !replayed || order.PetID != pet.ID {
			t.Errorf("retried order: got %+v, replayed %t, %v, want the stored one", order, replayed, err)
		}
		petRecord.BodyHash[0]++
		if _, _, err := store.CreatePet(t.Context(), animalstore.NewPet{Name: "another", CategoryID: 5}, petRecord); err == nil {
			t.Error("another body with the same token was accepted")
		}
		if pet, _, err = store.CreatePet(t.Context(), animalstore.NewPet{Name: "next", CategoryID: 1}, nil); err != nil || pet.ID != wantPet {
			t.Errorf("the next pet has id %d (%v), want %d", pet.ID, err, wantPet)
		}
		if order, _, err := store.PlaceOrder(t.Context(), animalstore.NewOrder{PetID: pet.ID}, at(3), nil); err != nil || order.ID != wantOrder {
			t.Errorf("the next order has id %d (%v), want %d", order.ID, err, wantOrder)
		}
		next := animalstore.NewKey{Name: "next", Plan: animalstore.PlanFree, Limits: animalstore.Limits{}, Permissions: animalstore.Read, Environment: animalstore.Production}
		if err := next.Validate(); err != nil {
			t.Fatal(err)
		}
		if key, err := store.CreateKey(t.Context(), next, secretHash(99), at(3)); err != nil || key.ID != wantKey {
			t.Errorf("the next key has id %d (%v), want %d", key.ID, err, wantKey)
		}
	})
}

// oddWebhooks adds webhooks in all states, with deliveries.
func oddWebhooks(t *testing.T, store db.DB) {
	t.Helper()
	ctx := t.Context()
	for n, state := range animalstore.WebhookStates {
		w := must[animalstore.Webhook](t)(store.CreateWebhook(ctx, animalstore.NewWebhook{URL: "https://example.com/?\\N", Types: "pet.*,webhook.*", Description: "é \\. '"}, "whsec_b25l", at(n)))
		must[animalstore.Webhook](t)(store.RotateWebhook(ctx, w.ID, "whsec_dHdv", at(n+1), func(*animalstore.Webhook) error { return nil }))
		must[animalstore.Delivery](t)(store.PingWebhook(ctx, w.ID, []animalstore.EventType{animalstore.WebhookPing, animalstore.PetCreated, animalstore.KeyBannedEvent}[n], at(n)))
		for _, due := range must[[]db.ClaimedDelivery](t)(store.ClaimDeliveries(ctx, at(n), at(n+1))) {
			_, _, err := store.FinishDelivery(ctx, due.Result(animalstore.Attempt{Time: at(n), Error: "no response", DurationMs: 7}, 0, 0), at(n), animalstore.Time{})
			if err != nil {
				t.Fatal(err)
			}
		}
		must[int64](t)(store.PublishEvents(ctx))
		must[bool](t)(store.DispatchEvents(ctx, at(n), 1000))
		must[animalstore.Webhook](t)(store.UpdateWebhook(ctx, w.ID, func(w *animalstore.Webhook) error {
			w.State = state
			if state == animalstore.WebhookDisabled {
				w.DisabledReason = "gone"
			}
			return nil
		}))
	}
}
