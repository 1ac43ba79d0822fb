package api_test

import (
	"context"
	"sync"

	"animalstore"
	"animalstore/internal/db"
)

// faultyDB is the real database, until a fault is armed.
type faultyDB struct {
	db.DB
	mu     sync.Mutex
	faults map[string]fault
}

// fault is what a method does instead of its work; nil lets it do its work.
type fault func(context.Context) error

// arm makes a method fail from now on. A nil fault mends it.
func (f *faultyDB) arm(method string, do fault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.faults == nil {
		f.faults = map[string]fault{}
	}
	f.faults[method] = do
}

func (f *faultyDB) hit(ctx context.Context, method string) error {
	f.mu.Lock()
	do := f.faults[method]
	f.mu.Unlock()
	if do == nil {
		return nil
	}
	return do(ctx)
}

func (f *faultyDB) CreatePet(ctx context.Context, p animalstore.NewPet, once *db.Once) (animalstore.Pet, bool, error) {
	if err := f.hit(ctx, "CreatePet"); err != nil {
		return animalstore.Pet{}, false, err
	}
	return f.DB.CreatePet(ctx, p, once)
}

func (f *faultyDB) Pet(ctx context.Context, id int64) (animalstore.Pet, error) {
	if err := f.hit(ctx, "Pet"); err != nil {
		return animalstore.Pet{}, err
	}
	return f.DB.Pet(ctx, id)
}

func (f *faultyDB) Pets(ctx context.Context, q db.PetQuery) ([]animalstore.Pet, error) {
	if err := f.hit(ctx, "Pets"); err != nil {
		return nil, err
	}
	return f.DB.Pets(ctx, q)
}

func (f *faultyDB) Orders(ctx context.Context, q db.OrderQuery) ([]animalstore.Order, error) {
	if err := f.hit(ctx, "Orders"); err != nil {
		return nil, err
	}
	return f.DB.Orders(ctx, q)
}

func (f *faultyDB) KeyByHash(ctx context.Context, hash db.KeyHash) (animalstore.Key, bool, error) {
	if err := f.hit(ctx, "KeyByHash"); err != nil {
		return animalstore.Key{}, false, err
	}
	return f.DB.KeyByHash(ctx, hash)
}

func (f *faultyDB) Ping(ctx context.Context) error {
	if err := f.hit(ctx, "Ping"); err != nil {
		return err
	}
	return f.DB.Ping(ctx)
}
