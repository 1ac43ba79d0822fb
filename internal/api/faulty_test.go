package api_test

import (
	"context"
	"strings"
	"sync"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/fair"
)

// faultyDB is the real database until a test arms a fault. It counts calls.
type faultyDB struct {
	db.DB
	mu     sync.Mutex
	faults map[string]fault
	calls  map[string]int
}

// fault replaces the work of a method, unless it is nil.
type fault func(context.Context) error

// arm makes a method fail from now on. A nil fault ends that.
func (f *faultyDB) arm(method string, do fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.faults == nil {
		f.faults = map[string]fault{}
	}
	f.faults[method] = do
}

// called returns how often each method was called since the last call of called. Events
// are also read in the background, which isn't counted.
func (f *faultyDB) called() map[string]int {
	f.mu.Lock()
	defer f.mu.Unlock()
	calls := f.calls
	f.calls = nil
	return calls
}

// fail counts a call and returns the error of an armed fault.
func (f *faultyDB) fail(ctx context.Context, method string) error {
	f.mu.Lock()
	do := f.faults[method]
	if f.calls == nil {
		f.calls = map[string]int{}
	}
	if background := fair.CallerOf(ctx).Kind == fair.System && strings.Contains(method, "Events"); !background {
		f.calls[method]++
	}
	f.mu.Unlock()
	if do == nil {
		return nil
	}
	return do(ctx)
}

// hit does the work of a method with one result, unless a fault is armed.
func hit[T any](ctx context.Context, f *faultyDB, method string, work func() (T, error)) (result T, err error) {
	if err := f.fail(ctx, method); err != nil {
		return result, err
	}
	return work()
}

// hit2 is hit for two results.
func hit2[T, U any](ctx context.Context, f *faultyDB, method string, work func() (T, U, error)) (first T, second U, err error) {
	if err := f.fail(ctx, method); err != nil {
		return first, second, err
	}
	return work()
}

func (f *faultyDB) CreatePet(ctx context.Context, p animalstore.NewPet, once *db.Idempotency) (animalstore.Pet, bool, error) {
	return hit2(ctx, f, "CreatePet", func() (animalstore.Pet, bool, error) { return f.DB.CreatePet(ctx, p, once) })
}

func (f *faultyDB) CreatePets(ctx context.Context, pets []animalstore.NewPet, once *db.Idempotency) ([]animalstore.Pet, bool, error) {
	return hit2(ctx, f, "CreatePets", func() ([]animalstore.Pet, bool, error) { return f.DB.CreatePets(ctx, pets, once) })
}

func (f *faultyDB) Pet(ctx context.Context, id int64) (animalstore.Pet, error) {
	return hit(ctx, f, "Pet", func() (animalstore.Pet, error) { return f.DB.Pet(ctx, id) })
}

func (f *faultyDB) UpdatePet(ctx context.Context, id int64, change func(*animalstore.Pet, bool) error) (animalstore.Pet, error) {
	return hit(ctx, f, "UpdatePet", func() (animalstore.Pet, error) { return f.DB.UpdatePet(ctx, id, change) })
}

func (f *faultyDB) DeletePet(ctx context.Context, id int64, check func(*animalstore.Pet, bool) error) error {
	if err := f.fail(ctx, "DeletePet"); err != nil {
		return err
	}
	return f.DB.DeletePet(ctx, id, check)
}

func (f *faultyDB) Pets(ctx context.Context, q animalstore.PetQuery, page db.Page) ([]animalstore.Pet, error) {
	return hit(ctx, f, "Pets", func() ([]animalstore.Pet, error) { return f.DB.Pets(ctx, q, page) })
}

func (f *faultyDB) AddFailures(ctx context.Context, failures []animalstore.Failure, limits db.FailureLimits) error {
	if err := f.fail(ctx, "AddFailures"); err != nil {
		return err
	}
	return f.DB.AddFailures(ctx, failures, limits)
}

func (f *faultyDB) Failures(ctx context.Context, q animalstore.FailureQuery, page db.Page) ([]animalstore.Failure, error) {
	return hit(ctx, f, "Failures", func() ([]animalstore.Failure, error) { return f.DB.Failures(ctx, q, page) })
}

func (f *faultyDB) CountPets(ctx context.Context, categoryID *int64) (animalstore.Inventory, error) {
	return hit(ctx, f, "CountPets", func() (animalstore.Inventory, error) { return f.DB.CountPets(ctx, categoryID) })
}

func (f *faultyDB) AddPhoto(ctx context.Context, p db.NewPhoto, limit int64, once *db.Idempotency) (animalstore.Photo, bool, error) {
	return hit2(ctx, f, "AddPhoto", func() (animalstore.Photo, bool, error) { return f.DB.AddPhoto(ctx, p, limit, once) })
}

func (f *faultyDB) Photo(ctx context.Context, id int64) (animalstore.Photo, error) {
	return hit(ctx, f, "Photo", func() (animalstore.Photo, error) { return f.DB.Photo(ctx, id) })
}

func (f *faultyDB) Photos(ctx context.Context, q animalstore.PhotoQuery, page db.Page) ([]animalstore.Photo, error) {
	return hit(ctx, f, "Photos", func() ([]animalstore.Photo, error) { return f.DB.Photos(ctx, q, page) })
}

func (f *faultyDB) DeletePhoto(ctx context.Context, id int64, check func(*animalstore.Photo) error) error {
	if err := f.fail(ctx, "DeletePhoto"); err != nil {
		return err
	}
	return f.DB.DeletePhoto(ctx, id, check)
}

func (f *faultyDB) Image(ctx context.Context, id int64, kind db.ImageKind) (db.Image, error) {
	return hit(ctx, f, "Image", func() (db.Image, error) { return f.DB.Image(ctx, id, kind) })
}

func (f *faultyDB) ImagePart(ctx context.Context, id int64, kind db.ImageKind, part int) ([]byte, error) {
	return hit(ctx, f, "ImagePart", func() ([]byte, error) { return f.DB.ImagePart(ctx, id, kind, part) })
}

func (f *faultyDB) PlaceOrder(ctx context.Context, in animalstore.NewOrder, at animalstore.Time, once *db.Idempotency) (animalstore.Order, bool, error) {
	return hit2(ctx, f, "PlaceOrder", func() (animalstore.Order, bool, error) { return f.DB.PlaceOrder(ctx, in, at, once) })
}

func (f *faultyDB) Order(ctx context.Context, id int64) (animalstore.Order, error) {
	return hit(ctx, f, "Order", func() (animalstore.Order, error) { return f.DB.Order(ctx, id) })
}

func (f *faultyDB) Orders(ctx context.Context, q animalstore.OrderQuery, page db.Page) ([]animalstore.Order, error) {
	return hit(ctx, f, "Orders", func() ([]animalstore.Order, error) { return f.DB.Orders(ctx, q, page) })
}

func (f *faultyDB) UpdateOrder(ctx context.Context, id int64, change func(*animalstore.Order) error) (animalstore.Order, error) {
	return hit(ctx, f, "UpdateOrder", func() (animalstore.Order, error) { return f.DB.UpdateOrder(ctx, id, change) })
}

func (f *faultyDB) Category(ctx context.Context, id int64) (animalstore.Category, error) {
	return hit(ctx, f, "Category", func() (animalstore.Category, error) { return f.DB.Category(ctx, id) })
}

func (f *faultyDB) Categories(ctx context.Context, q db.CategoryQuery) ([]animalstore.Category, error) {
	return hit(ctx, f, "Categories", func() ([]animalstore.Category, error) { return f.DB.Categories(ctx, q) })
}

func (f *faultyDB) PutCategory(ctx context.Context, c animalstore.Category, check func(*animalstore.Category) error) (bool, error) {
	return hit(ctx, f, "PutCategory", func() (bool, error) { return f.DB.PutCategory(ctx, c, check) })
}

func (f *faultyDB) CreateKey(ctx context.Context, k animalstore.NewKey, hash db.KeyHash, at animalstore.Time) (animalstore.Key, error) {
	return hit(ctx, f, "CreateKey", func() (animalstore.Key, error) { return f.DB.CreateKey(ctx, k, hash, at) })
}

// KeysVersion is read in the background, so it isn't counted. It fails while KeyByHash does.
func (f *faultyDB) KeysVersion(ctx context.Context) (version string, err error) {
	f.mu.Lock()
	failing := f.faults["KeyByHash"] != nil
	f.mu.Unlock()
	if failing {
		return "", db.ErrUnavailable
	}
	return f.DB.KeysVersion(ctx)
}

func (f *faultyDB) KeyByHash(ctx context.Context, hash db.KeyHash) (animalstore.Key, bool, error) {
	return hit2(ctx, f, "KeyByHash", func() (animalstore.Key, bool, error) { return f.DB.KeyByHash(ctx, hash) })
}

func (f *faultyDB) Key(ctx context.Context, id int64) (animalstore.Key, error) {
	return hit(ctx, f, "Key", func() (animalstore.Key, error) { return f.DB.Key(ctx, id) })
}

func (f *faultyDB) Keys(ctx context.Context, page db.Page) ([]animalstore.Key, error) {
	return hit(ctx, f, "Keys", func() ([]animalstore.Key, error) { return f.DB.Keys(ctx, page) })
}

func (f *faultyDB) UpdateKey(ctx context.Context, id int64, at animalstore.Time, change func(*animalstore.Key, bool) error) (animalstore.Key, error) {
	return hit(ctx, f, "UpdateKey", func() (animalstore.Key, error) { return f.DB.UpdateKey(ctx, id, at, change) })
}

func (f *faultyDB) RotateKey(ctx context.Context, id int64, r db.KeyRotation, check func(*animalstore.Key) error) (animalstore.Key, error) {
	return hit(ctx, f, "RotateKey", func() (animalstore.Key, error) { return f.DB.RotateKey(ctx, id, r, check) })
}

func (f *faultyDB) SaveUsage(ctx context.Context, usage []db.KeyUsage) error {
	if err := f.fail(ctx, "SaveUsage"); err != nil {
		return err
	}
	return f.DB.SaveUsage(ctx, usage)
}

func (f *faultyDB) Usage(ctx context.Context, keyID int64, since animalstore.Time) ([]animalstore.Usage, error) {
	return hit(ctx, f, "Usage", func() ([]animalstore.Usage, error) { return f.DB.Usage(ctx, keyID, since) })
}

func (f *faultyDB) LimitState(ctx context.Context, keyID int64) (db.LimitState, error) {
	return hit(ctx, f, "LimitState", func() (db.LimitState, error) { return f.DB.LimitState(ctx, keyID) })
}

func (f *faultyDB) Size(ctx context.Context) (int64, error) {
	return hit(ctx, f, "Size", func() (int64, error) { return f.DB.Size(ctx) })
}

func (f *faultyDB) Events(ctx context.Context, q db.EventQuery) ([]animalstore.Event, int64, error) {
	return hit2(ctx, f, "Events", func() ([]animalstore.Event, int64, error) { return f.DB.Events(ctx, q) })
}

func (f *faultyDB) EventsSince(ctx context.Context, since animalstore.Time) (int64, error) {
	return hit(ctx, f, "EventsSince", func() (int64, error) { return f.DB.EventsSince(ctx, since) })
}

func (f *faultyDB) PublishEvents(ctx context.Context) (int64, error) {
	return hit(ctx, f, "PublishEvents", func() (int64, error) { return f.DB.PublishEvents(ctx) })
}

func (f *faultyDB) Ping(ctx context.Context) error {
	if err := f.fail(ctx, "Ping"); err != nil {
		return err
	}
	return f.DB.Ping(ctx)
}

func (f *faultyDB) CreateWebhook(ctx context.Context, w animalstore.NewWebhook, secret string, at animalstore.Time) (animalstore.Webhook, error) {
	return hit(ctx, f, "CreateWebhook", func() (animalstore.Webhook, error) { return f.DB.CreateWebhook(ctx, w, secret, at) })
}

func (f *faultyDB) Webhook(ctx context.Context, id int64) (animalstore.Webhook, error) {
	return hit(ctx, f, "Webhook", func() (animalstore.Webhook, error) { return f.DB.Webhook(ctx, id) })
}

func (f *faultyDB) Webhooks(ctx context.Context, page db.Page) ([]animalstore.Webhook, error) {
	return hit(ctx, f, "Webhooks", func() ([]animalstore.Webhook, error) { return f.DB.Webhooks(ctx, page) })
}

func (f *faultyDB) UpdateWebhook(ctx context.Context, id int64, change func(*animalstore.Webhook) error) (animalstore.Webhook, error) {
	return hit(ctx, f, "UpdateWebhook", func() (animalstore.Webhook, error) { return f.DB.UpdateWebhook(ctx, id, change) })
}

func (f *faultyDB) DeleteWebhook(ctx context.Context, id int64, check func(*animalstore.Webhook) error) (err error) {
	if err = f.fail(ctx, "DeleteWebhook"); err != nil {
		return
	}
	return f.DB.DeleteWebhook(ctx, id, check)
}

func (f *faultyDB) RotateWebhook(ctx context.Context, id int64, secret string, until animalstore.Time, check func(*animalstore.Webhook) error) (animalstore.Webhook, error) {
	return hit(ctx, f, "RotateWebhook", func() (animalstore.Webhook, error) { return f.DB.RotateWebhook(ctx, id, secret, until, check) })
}

func (f *faultyDB) PingWebhook(ctx context.Context, id int64, eventType animalstore.EventType, at animalstore.Time) (animalstore.Delivery, error) {
	return hit(ctx, f, "PingWebhook", func() (animalstore.Delivery, error) { return f.DB.PingWebhook(ctx, id, eventType, at) })
}

func (f *faultyDB) Deliveries(ctx context.Context, webhookID int64, q animalstore.DeliveryQuery, page db.Page) ([]animalstore.Delivery, error) {
	return hit(ctx, f, "Deliveries", func() ([]animalstore.Delivery, error) { return f.DB.Deliveries(ctx, webhookID, q, page) })
}

func (f *faultyDB) Delivery(ctx context.Context, webhookID, id int64) (animalstore.DeliveryWithBody, error) {
	return hit(ctx, f, "Delivery", func() (animalstore.DeliveryWithBody, error) { return f.DB.Delivery(ctx, webhookID, id) })
}

func (f *faultyDB) RetryDeliveries(ctx context.Context, q db.RetryQuery, at animalstore.Time) (int, int64, error) {
	return hit2(ctx, f, "RetryDeliveries", func() (int, int64, error) { return f.DB.RetryDeliveries(ctx, q, at) })
}

func (f *faultyDB) RetryDelivery(ctx context.Context, webhookID, id int64, at animalstore.Time) (animalstore.Delivery, error) {
	return hit(ctx, f, "RetryDelivery", func() (animalstore.Delivery, error) { return f.DB.RetryDelivery(ctx, webhookID, id, at) })
}
