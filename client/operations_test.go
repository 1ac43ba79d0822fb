package client_test

import (
	"bytes"
	"encoding/json"
	"net/http"
	"reflect"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/client/clienttest"
	"animalstore/internal/photo/phototest"
	"animalstore/openapi"
)

// operation is an operation of the OpenAPI document.
type operation struct {
	id, method string
	path       *regexp.Regexp
}

// operations are all operations of the document.
func operations(t *testing.T) (all []operation) {
	t.Helper()
	var document struct {
		Paths map[string]map[string]json.RawMessage
	}
	if err := json.Unmarshal(openapi.JSON, &document); err != nil {
		t.Fatal(err)
	}
	parameter := regexp.MustCompile(`\\\{\w+\\\}`)
	for path, item := range document.Paths {
		pattern := parameter.ReplaceAllString(regexp.QuoteMeta("/v1"+path), "[^/]+")
		for method, raw := range item {
			var o struct{ OperationID string }
			if json.Unmarshal(raw, &o) == nil && o.OperationID != "" {
				all = append(all, operation{o.OperationID, strings.ToUpper(method), regexp.MustCompile("^" + pattern + "$")})
			}
		}
	}
	if len(all) < 22 {
		t.Fatalf("got %d operations of the document, want at least 22", len(all))
	}
	return all
}

// TestEveryOperation: each operation of the document has a method of the same
// name, which calls that operation and succeeds.
func TestEveryOperation(t *testing.T) {
	var mu sync.Mutex
	var called []string
	known := operations(t)
	store := clienttest.New(t, clienttest.WithMiddleware(func(h http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			defer mu.Unlock()
			for _, o := range known {
				if o.method == r.Method && o.path.MatchString(r.URL.Path) {
					called = append(called, o.id)
				}
			}
			h.ServeHTTP(w, r)
		})
	}))
	c, ctx := store.Client, t.Context()
	pet, goner := add(t, c, "Rex"), add(t, c, "Mia")
	order, err := c.PlaceOrder(ctx, pet.ID)
	if err != nil {
		t.Fatal(err)
	}
	picture := phototest.PNG(phototest.Drawing(400, 300))
	photo, err := c.AddPhoto(ctx, pet.ID, bytes.NewReader(picture))
	if err != nil {
		t.Fatal(err)
	}
	spare, err := c.AddPhoto(ctx, pet.ID, bytes.NewReader(picture))
	if err != nil {
		t.Fatal(err)
	}
	key, err := c.CreateKey(ctx, client.NewKey{Name: "another"})
	if err != nil {
		t.Fatal(err)
	}
	revoked, err := c.CreateKey(ctx, client.NewKey{Name: "to be revoked"})
	if err != nil {
		t.Fatal(err)
	}
	webhook, err := c.CreateWebhook(ctx, animalstore.NewWebhook{URL: "https://example.com/hook"})
	if err != nil {
		t.Fatal(err)
	}
	removed, err := c.CreateWebhook(ctx, animalstore.NewWebhook{URL: "https://example.com/hook"})
	if err != nil {
		t.Fatal(err)
	}
	delivery, err := c.PingWebhook(ctx, webhook.ID)
	if err != nil {
		t.Fatal(err)
	}
	calls := map[string]func() error{
		"listPets":     func() error { return first(c.ListPets(ctx, client.PetQuery{})) },
		"createPet":    func() error { return only(c.CreatePet(ctx, animalstore.NewPet{Name: "Tom"})) },
		"getPet":       func() error { return only(c.GetPet(ctx, pet.ID)) },
		"updatePet":    func() error { return only(c.UpdatePet(ctx, pet.ID, animalstore.PetPatch{Name: new("Rexy")})) },
		"deletePet":    func() error { return c.DeletePet(ctx, goner.ID) },
		"addPhoto":     func() error { return only(c.AddPhoto(ctx, pet.ID, bytes.NewReader(picture))) },
		"listPhotos":   func() error { return first(c.ListPhotos(ctx, client.PhotoQuery{PetIDs: []int64{pet.ID, 99}})) },
		"getPhoto":     func() error { return only(c.GetPhoto(ctx, photo.ID)) },
		"getImage":     func() error { return only(c.GetImage(ctx, photo.ID)) },
		"getThumbnail": func() error { return only(c.GetThumbnail(ctx, photo.ID)) },
		"deletePhoto":  func() error { return c.DeletePhoto(ctx, spare.ID) },
		"listOrders":   func() error { return first(c.ListOrders(ctx, client.OrderQuery{})) },
		"placeOrder":   func() error { return only(c.PlaceOrder(ctx, add(t, c, "Kim").ID)) },
		"getOrder":     func() error { return only(c.GetOrder(ctx, order.ID)) },
		"updateOrder": func() error {
			return only(c.UpdateOrder(ctx, order.ID, animalstore.OrderPatch{Status: new(animalstore.OrderApproved)}))
		},
		"getInventory":   func() error { return only(c.GetInventory(ctx, client.InventoryQuery{})) },
		"listCategories": func() error { return first(c.ListCategories(ctx, client.PageQuery{})) },
		"getCategory":    func() error { return only(c.GetCategory(ctx, 1)) },
		"putCategory":    func() error { return only(c.PutCategory(ctx, animalstore.Category{ID: -3, Name: "fish"})) },
		"listEvents":     func() error { return first(c.ListEvents(ctx, client.EventsOptions{})) },
		"getLimits":      func() error { return only(c.GetLimits(ctx)) },
		"getUsage":       func() error { return only(c.GetUsage(ctx, 0)) },
		"getStatus":      func() error { return only(c.GetStatus(ctx)) },
		"listKeys":       func() error { return first(c.ListKeys(ctx, client.PageQuery{})) },
		"createKey":      func() error { return only(c.CreateKey(ctx, client.NewKey{Name: "third"})) },
		"getKey":         func() error { return only(c.GetKey(ctx, key.ID)) },
		"updateKey":      func() error { return only(c.UpdateKey(ctx, key.ID, animalstore.KeyPatch{Name: new("renamed")})) },
		"revokeKey":      func() error { return c.RevokeKey(ctx, revoked.ID) },
		"rotateKey":      func() error { return only(c.RotateKey(ctx, 1, client.DefaultGrace)) },
		"unbanKey":       func() error { return only(c.UnbanKey(ctx, 1)) },
		"getKeyUsage":    func() error { return only(c.GetKeyUsage(ctx, 1, 48)) },
		"listWebhooks":   func() error { return first(c.ListWebhooks(ctx, client.PageQuery{})) },
		"createWebhook": func() error {
			return only(c.CreateWebhook(ctx, animalstore.NewWebhook{URL: "https://localhost:8443/"}))
		},
		"getWebhook": func() error { return only(c.GetWebhook(ctx, webhook.ID)) },
		"updateWebhook": func() error {
			return only(c.UpdateWebhook(ctx, webhook.ID, animalstore.WebhookPatch{Description: new("till")}))
		},
		"deleteWebhook": func() error { return c.DeleteWebhook(ctx, removed.ID) },
		"rotateWebhook": func() error { return only(c.RotateWebhook(ctx, webhook.ID, client.DefaultGrace)) },
		"pingWebhook":   func() error { return only(c.PingWebhook(ctx, webhook.ID)) },
		"listDeliveries": func() error {
			return first(c.ListDeliveries(ctx, webhook.ID, client.DeliveryQuery{State: animalstore.DeliveryPending}))
		},
		"getDelivery": func() error { return only(c.GetDelivery(ctx, webhook.ID, delivery.ID)) },
		"retryDeliveries": func() error {
			return only(c.RetryDeliveries(ctx, webhook.ID, animalstore.DeliveryRetry{State: animalstore.DeliveryPending}))
		},
		"retryDelivery": func() error { return only(c.RetryDelivery(ctx, webhook.ID, delivery.ID)) },
	}
	for _, o := range known {
		name := strings.ToUpper(o.id[:1]) + o.id[1:]
		if _, ok := reflect.TypeFor[*client.Client]().MethodByName(name); !ok {
			t.Errorf("operation %s: got no method %s of Client, want one", o.id, name)
			continue
		}
		call, ok := calls[o.id]
		if !ok {
			t.Errorf("operation %s is not called here: add it", o.id)
			continue
		}
		called = nil
		if err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if len(called) == 0 || called[len(called)-1] != o.id {
			t.Errorf("%s: got operations %q, want %s", name, called, o.id)
		}
	}
}

func only[T any](_ T, err error) error { return err }

// first is the first error of a list, or an error if the list is empty.
func first[T any](list func(func(T, error) bool)) error {
	for _, err := range list {
		return err
	}
	return animalstore.Errorf(animalstore.InternalError, "the list is empty")
}

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

// TestConditions: ETags, replays and everything else outside the body work.
func TestConditions(t *testing.T) {
	store := clienttest.New(t)
	c, ctx := store.Client, t.Context()
	var made, again, read client.Meta
	pet, err := c.CreatePet(ctx, animalstore.NewPet{Name: "Rex"}, client.IdempotencyKey("order-66"), client.ReadMeta(&made))
	if err != nil || made.Status != http.StatusCreated || made.Replayed || made.RequestID == "" || made.Attempts != 1 {
		t.Errorf("got %+v, %v, want a creation", made, err)
	}
	if same, err := c.CreatePet(ctx, animalstore.NewPet{Name: "Rex"}, client.IdempotencyKey("order-66"), client.ReadMeta(&again)); err != nil || same != pet || !again.Replayed {
		t.Errorf("got %+v, %+v, %v, want %+v replayed", same, again, err, pet)
	}
	_, err = c.CreatePet(ctx, animalstore.NewPet{Name: "Mia"}, client.IdempotencyKey("order-66"))
	wantCode(t, err, animalstore.IdempotencyKeyReused)
	_, err = c.CreatePet(ctx, animalstore.NewPet{Name: "Mia"}, client.IdempotencyKey(""))
	wantCode(t, err, animalstore.InvalidParameter)
	if _, err = c.GetPet(ctx, pet.ID, client.ReadMeta(&read)); err != nil || read.ETag != made.ETag || read.ETag == "" {
		t.Errorf("got tag %q, %v, want %q", read.ETag, err, made.ETag)
	}
	if _, err = c.GetPet(ctx, pet.ID, client.IfNoneMatch(read.ETag)); err != client.ErrNotModified {
		t.Errorf("got %v, want ErrNotModified", err)
	}
	if _, err = c.UpdatePet(ctx, pet.ID, animalstore.PetPatch{Name: new("Rexy")}, client.IfMatch(read.ETag)); err != nil {
		t.Error(err)
	}
	_, err = c.UpdatePet(ctx, pet.ID, animalstore.PetPatch{Name: new("Rexer")}, client.IfMatch(read.ETag))
	wantCode(t, err, animalstore.PreconditionFailed)
	wantCode(t, c.DeletePet(ctx, pet.ID, client.IfMatch(read.ETag)), animalstore.PreconditionFailed)
	if seen, ok := c.RateLimit(); !ok || seen.Limit != 1<<40 || seen.Remaining >= seen.Limit || time.Until(seen.Reset) > 62*time.Second {
		t.Errorf("got %+v, %t, want the values of the headers", seen, ok)
	}
	useless := map[string]error{
		"If-Match on a new key":           only(c.CreateKey(ctx, client.NewKey{Name: "k"}, client.IfMatch(`"x"`))),
		"If-Match without a tag":          only(c.UpdatePet(ctx, pet.ID, animalstore.PetPatch{}, client.IfMatch(""))),
		"If-Match on an addition":         only(c.CreatePet(ctx, animalstore.NewPet{Name: "Tom"}, client.IfMatch(`"x"`))),
		"If-None-Match on a change":       only(c.PutCategory(ctx, animalstore.Category{Name: "dogs"}, client.IfNoneMatch(`"x"`))),
		"If-None-Match: * on a pet":       only(c.UpdatePet(ctx, pet.ID, animalstore.PetPatch{}, client.IfNoneMatch(`*`))),
		"Idempotency-Key on a key":        only(c.CreateKey(ctx, client.NewKey{Name: "k"}, client.IdempotencyKey("x"))),
		"Idempotency-Key on another verb": only(c.UpdateOrder(ctx, 1, animalstore.OrderPatch{Status: new(animalstore.OrderApproved)}, client.IdempotencyKey("x"))),
	}
	for what, err := range useless {
		if err == nil {
			t.Errorf("%s: got success, want an error: it would have no effect", what)
		}
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
