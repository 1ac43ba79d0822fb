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

func (f *faultyDB) hit(ctx context.Context, method string) error {
	f.mu.Lock()
	do := f.faults[method]
	if f.calls == nil {
		f.calls = map[string]int{}
	}
	if background := fair.CallerOf(ctx) == fair.System && strings.Contains(method, "Events"); !background {
		f.calls[method]++
	}
	f.mu.Unlock()
	if do == nil {
		return nil
	}
	return do(ctx)
}

func (f *faultyDB) CreatePet(ctx context.Context, p animalstore.NewPet, once *db.Idempotency) (pet animalstore.Pet, replayed bool, err error) {
	if err = f.hit(ctx, "CreatePet"); err != nil {
		return
	}
	return f.DB.CreatePet(ctx, p, once)
}

func (f *faultyDB) CreatePets(ctx context.Context, pets []animalstore.NewPet, once *db.Idempotency) (created []animalstore.Pet, replayed bool, err error) {
	if err = f.hit(ctx, "CreatePets"); err != nil {
		return
	}
	return f.DB.CreatePets(ctx, pets, once)
}

func (f *faultyDB) Pet(ctx context.Context, id int64) (pet animalstore.Pet, err error) {
	if err = f.hit(ctx, "Pet"); err != nil {
		return
	}
	return f.DB.Pet(ctx, id)
}

func (f *faultyDB) UpdatePet(ctx context.Context, id int64, change func(*animalstore.Pet, bool) error) (pet animalstore.Pet, err error) {
	if err = f.hit(ctx, "UpdatePet"); err != nil {
		return
	}
	return f.DB.UpdatePet(ctx, id, change)
}

func (f *faultyDB) DeletePet(ctx context.Context, id int64, check func(*animalstore.Pet, bool) error) error {
	if err := f.hit(ctx, "DeletePet"); err != nil {
		return err
	}
	return f.DB.DeletePet(ctx, id, check)
}

func (f *faultyDB) Pets(ctx context.Context, q db.PetQuery) (pets []animalstore.Pet, err error) {
	if err = f.hit(ctx, "Pets"); err != nil {
		return
	}
	return f.DB.Pets(ctx, q)
}

func (f *faultyDB) PetsByName(ctx context.Context, q db.NameQuery) (pets []animalstore.Pet, next *db.NamePosition, err error) {
	if err = f.hit(ctx, "PetsByName"); err != nil {
		return
	}
	return f.DB.PetsByName(ctx, q)
}

func (f *faultyDB) AddFailures(ctx context.Context, failures []animalstore.Failure, limits db.FailureLimits) error {
	if err := f.hit(ctx, "AddFailures"); err != nil {
		return err
	}
	return f.DB.AddFailures(ctx, failures, limits)
}

func (f *faultyDB) Failures(ctx context.Context, q db.FailureQuery) (failures []animalstore.Failure, err error) {
	if err = f.hit(ctx, "Failures"); err != nil {
		return
	}
	return f.DB.Failures(ctx, q)
}

func (f *faultyDB) CountPets(ctx context.Context, categoryID *int64) (counted animalstore.Inventory, err error) {
	if err = f.hit(ctx, "CountPets"); err != nil {
		return
	}
	return f.DB.CountPets(ctx, categoryID)
}

func (f *faultyDB) AddPhoto(ctx context.Context, p db.NewPhoto, limit int64, once *db.Idempotency) (photo animalstore.Photo, replayed bool, err error) {
	if err = f.hit(ctx, "AddPhoto"); err != nil {
		return
	}
	return f.DB.AddPhoto(ctx, p, limit, once)
}

func (f *faultyDB) Photo(ctx context.Context, id int64) (photo animalstore.Photo, err error) {
	if err = f.hit(ctx, "Photo"); err != nil {
		return
	}
	return f.DB.Photo(ctx, id)
}

func (f *faultyDB) Photos(ctx context.Context, q db.PhotoQuery) (photos []animalstore.Photo, err error) {
	if err = f.hit(ctx, "Photos"); err != nil {
		return
	}
	return f.DB.Photos(ctx, q)
}

func (f *faultyDB) DeletePhoto(ctx context.Context, id int64, check func(*animalstore.Photo) error) error {
	if err := f.hit(ctx, "DeletePhoto"); err != nil {
		return err
	}
	return f.DB.DeletePhoto(ctx, id, check)
}

func (f *faultyDB) Image(ctx context.Context, id int64, kind db.ImageKind) (image db.Image, err error) {
	if err = f.hit(ctx, "Image"); err != nil {
		return
	}
	return f.DB.Image(ctx, id, kind)
}

func (f *faultyDB) KeyNames(ctx context.Context, ids []int64) (names map[int64]string, err error) {
	if err = f.hit(ctx, "KeyNames"); err != nil {
		return
	}
	return f.DB.KeyNames(ctx, ids)
}

func (f *faultyDB) ImagePart(ctx context.Context, id int64, kind db.ImageKind, part int) (data []byte, err error) {
	if err = f.hit(ctx, "ImagePart"); err != nil {
		return
	}
	return f.DB.ImagePart(ctx, id, kind, part)
}

func (f *faultyDB) PlaceOrder(ctx context.Context, in animalstore.NewOrder, at animalstore.Time, once *db.Idempotency) (order animalstore.Order, replayed bool, err error) {
	if err = f.hit(ctx, "PlaceOrder"); err != nil {
		return
	}
	return f.DB.PlaceOrder(ctx, in, at, once)
}

func (f *faultyDB) Order(ctx context.Context, id int64) (order animalstore.Order, err error) {
	if err = f.hit(ctx, "Order"); err != nil {
		return
	}
	return f.DB.Order(ctx, id)
}

func (f *faultyDB) Orders(ctx context.Context, q db.OrderQuery) (orders []animalstore.Order, err error) {
	if err = f.hit(ctx, "Orders"); err != nil {
		return
	}
	return f.DB.Orders(ctx, q)
}

func (f *faultyDB) UpdateOrder(ctx context.Context, id int64, change func(*animalstore.Order) error) (order animalstore.Order, err error) {
	if err = f.hit(ctx, "UpdateOrder"); err != nil {
		return
	}
	return f.DB.UpdateOrder(ctx, id, change)
}

func (f *faultyDB) Category(ctx context.Context, id int64) (category animalstore.Category, err error) {
	if err = f.hit(ctx, "Category"); err != nil {
		return
	}
	return f.DB.Category(ctx, id)
}

func (f *faultyDB) Categories(ctx context.Context, q db.CategoryQuery) (categories []animalstore.Category, err error) {
	if err = f.hit(ctx, "Categories"); err != nil {
		return
	}
	return f.DB.Categories(ctx, q)
}

func (f *faultyDB) PutCategory(ctx context.Context, c animalstore.Category, check func(*animalstore.Category) error) (created bool, err error) {
	if err = f.hit(ctx, "PutCategory"); err != nil {
		return
	}
	return f.DB.PutCategory(ctx, c, check)
}

func (f *faultyDB) CreateKey(ctx context.Context, k animalstore.NewKey, hash db.KeyHash, at animalstore.Time) (key animalstore.Key, err error) {
	if err = f.hit(ctx, "CreateKey"); err != nil {
		return
	}
	return f.DB.CreateKey(ctx, k, hash, at)
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

func (f *faultyDB) KeyByHash(ctx context.Context, hash db.KeyHash) (key animalstore.Key, found bool, err error) {
	if err = f.hit(ctx, "KeyByHash"); err != nil {
		return
	}
	return f.DB.KeyByHash(ctx, hash)
}

func (f *faultyDB) Key(ctx context.Context, id int64) (key animalstore.Key, err error) {
	if err = f.hit(ctx, "Key"); err != nil {
		return
	}
	return f.DB.Key(ctx, id)
}

func (f *faultyDB) Keys(ctx context.Context, q db.KeyQuery) (keys []animalstore.Key, err error) {
	if err = f.hit(ctx, "Keys"); err != nil {
		return
	}
	return f.DB.Keys(ctx, q)
}

func (f *faultyDB) UpdateKey(ctx context.Context, id int64, at animalstore.Time, change func(*animalstore.Key, bool) error) (key animalstore.Key, err error) {
	if err = f.hit(ctx, "UpdateKey"); err != nil {
		return
	}
	return f.DB.UpdateKey(ctx, id, at, change)
}

func (f *faultyDB) RotateKey(ctx context.Context, id int64, r db.KeyRotation, check func(*animalstore.Key) error) (key animalstore.Key, err error) {
	if err = f.hit(ctx, "RotateKey"); err != nil {
		return
	}
	return f.DB.RotateKey(ctx, id, r, check)
}

func (f *faultyDB) SaveUsage(ctx context.Context, usage []db.KeyUsage) error {
	if err := f.hit(ctx, "SaveUsage"); err != nil {
		return err
	}
	return f.DB.SaveUsage(ctx, usage)
}

func (f *faultyDB) Usage(ctx context.Context, keyID int64, since animalstore.Time) (usage []animalstore.Usage, err error) {
	if err = f.hit(ctx, "Usage"); err != nil {
		return
	}
	return f.DB.Usage(ctx, keyID, since)
}

func (f *faultyDB) LimitState(ctx context.Context, keyID int64) (state db.LimitState, err error) {
	if err = f.hit(ctx, "LimitState"); err != nil {
		return
	}
	return f.DB.LimitState(ctx, keyID)
}

func (f *faultyDB) Size(ctx context.Context) (bytes int64, err error) {
	if err = f.hit(ctx, "Size"); err != nil {
		return
	}
	return f.DB.Size(ctx)
}

func (f *faultyDB) Events(ctx context.Context, q db.EventQuery) (events []animalstore.Event, last int64, err error) {
	if err = f.hit(ctx, "Events"); err != nil {
		return
	}
	return f.DB.Events(ctx, q)
}

func (f *faultyDB) PublishEvents(ctx context.Context) (newest int64, err error) {
	if err = f.hit(ctx, "PublishEvents"); err != nil {
		return
	}
	return f.DB.PublishEvents(ctx)
}

func (f *faultyDB) Ping(ctx context.Context) error {
	if err := f.hit(ctx, "Ping"); err != nil {
		return err
	}
	return f.DB.Ping(ctx)
}

func (f *faultyDB) CreateWebhook(ctx context.Context, w animalstore.NewWebhook, secret string, at animalstore.Time) (webhook animalstore.Webhook, err error) {
	if err = f.hit(ctx, "CreateWebhook"); err != nil {
		return
	}
	return f.DB.CreateWebhook(ctx, w, secret, at)
}

func (f *faultyDB) Webhook(ctx context.Context, id int64) (webhook animalstore.Webhook, err error) {
	if err = f.hit(ctx, "Webhook"); err != nil {
		return
	}
	return f.DB.Webhook(ctx, id)
}

func (f *faultyDB) Webhooks(ctx context.Context, q db.WebhookQuery) (webhooks []animalstore.Webhook, err error) {
	if err = f.hit(ctx, "Webhooks"); err != nil {
		return
	}
	return f.DB.Webhooks(ctx, q)
}

func (f *faultyDB) UpdateWebhook(ctx context.Context, id int64, change func(*animalstore.Webhook) error) (webhook animalstore.Webhook, err error) {
	if err = f.hit(ctx, "UpdateWebhook"); err != nil {
		return
	}
	return f.DB.UpdateWebhook(ctx, id, change)
}

func (f *faultyDB) DeleteWebhook(ctx context.Context, id int64, check func(*animalstore.Webhook) error) (err error) {
	if err = f.hit(ctx, "DeleteWebhook"); err != nil {
		return
	}
	return f.DB.DeleteWebhook(ctx, id, check)
}

func (f *faultyDB) RotateWebhook(ctx context.Context, id int64, secret string, until animalstore.Time, check func(*animalstore.Webhook) error) (webhook animalstore.Webhook, err error) {
	if err = f.hit(ctx, "RotateWebhook"); err != nil {
		return
	}
	return f.DB.RotateWebhook(ctx, id, secret, until, check)
}

func (f *faultyDB) PingWebhook(ctx context.Context, id int64, eventType animalstore.EventType, at animalstore.Time) (delivery animalstore.Delivery, err error) {
	if err = f.hit(ctx, "PingWebhook"); err != nil {
		return
	}
	return f.DB.PingWebhook(ctx, id, eventType, at)
}

func (f *faultyDB) Deliveries(ctx context.Context, q db.DeliveryQuery) (deliveries []animalstore.Delivery, err error) {
	if err = f.hit(ctx, "Deliveries"); err != nil {
		return
	}
	return f.DB.Deliveries(ctx, q)
}

func (f *faultyDB) Delivery(ctx context.Context, webhookID, id int64) (delivery animalstore.DeliveryWithBody, err error) {
	if err = f.hit(ctx, "Delivery"); err != nil {
		return
	}
	return f.DB.Delivery(ctx, webhookID, id)
}

func (f *faultyDB) RetryDeliveries(ctx context.Context, q db.RetryQuery, at animalstore.Time) (retried int, next int64, err error) {
	if err = f.hit(ctx, "RetryDeliveries"); err != nil {
		return
	}
	return f.DB.RetryDeliveries(ctx, q, at)
}

func (f *faultyDB) RetryDelivery(ctx context.Context, webhookID, id int64, at animalstore.Time) (delivery animalstore.Delivery, err error) {
	if err = f.hit(ctx, "RetryDelivery"); err != nil {
		return
	}
	return f.DB.RetryDelivery(ctx, webhookID, id, at)
}
