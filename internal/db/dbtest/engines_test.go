//go:build unix

package dbtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/db/postgres"
	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/db/sqlite"

	"pgregory.net/rapid"
)

func TestMain(m *testing.M) {
	code := m.Run()
	pgtest.Close()
	os.Exit(code)
}

// TestEnginesAgree runs random sequences of the operations that the model doesn't know, by one
// caller, with a fixed clock: both engines must return the same results. Ids are compared by their order,
// because an engine may skip some.
func TestEnginesAgree(t *testing.T) {
	file, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "store.db"), sqlite.Options{Serve: true, NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	server, err := postgres.Open(t.Context(), pgtest.Shared(t).NewDatabase(t, ""), postgres.Options{Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	both := [2]*numbered{{db: file}, {db: server}}
	steps := 0
	rapid.Check(t, func(rt *rapid.T) {
		draw := func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "n") }
		for range 40 {
			steps++
			call := calls[draw(len(calls))]
			// Both engines get the same draws.
			var drawn []int
			var results [2]any
			for i, n := range both {
				position := 0
				results[i] = n.result(t.Context(), call, func(of int) int {
					if position == len(drawn) {
						drawn = append(drawn, draw(of))
					}
					position++
					return drawn[position-1]
				}, steps)
			}
			if !reflect.DeepEqual(results[0], results[1]) {
				rt.Fatalf("%s%v\nSQLite     %+v\nPostgreSQL %+v", call.name, drawn, results[0], results[1])
			}
		}
	})
	checkAgreement(t, server)
}

// numbered is an engine whose ids are replaced by their index in the order of creation.
type numbered struct {
	db                         db.DB
	pets, orders, keys, photos []int64
	step                       int
}

// place returns the position of an id, which is never 0.
func place(ids []int64, id int64) int64 { return int64(1 + slices.Index(ids, id)) }

// some returns one of the last few ids, or rarely one that was never assigned.
func some(ids []int64, draw func(int) int) int64 {
	back := draw(8)
	if back >= len(ids) {
		return 1 << 40
	}
	return ids[len(ids)-1-back]
}

// call is one operation. It returns the engine's result, with real ids.
type call struct {
	name string
	do   func(ctx context.Context, n *numbered, draw func(int) int) (any, error)
}

// result returns the result of a call, with ids replaced by places.
func (n *numbered) result(ctx context.Context, c call, draw func(int) int, step int) any {
	n.step = step
	got, err := c.do(ctx, n, draw)
	var coded *animalstore.Error
	switch {
	case errors.As(err, &coded):
		return coded.Code
	case errors.Is(err, db.ErrNotFound):
		return db.ErrNotFound // engines may wrap it differently
	case errors.Is(err, db.ErrExists), errors.Is(err, errNotNow):
		return err.Error()
	case err != nil && (c.name == "SaveUsage" || c.name == "SaveLimitStates"):
		return "refused" // for a key that does not exist
	case err != nil:
		return fmt.Errorf("%s: %w", c.name, err)
	}
	return n.places(got)
}

// places replaces ids with their places.
func (n *numbered) places(got any) any {
	switch v := got.(type) {
	case animalstore.Pet:
		v.ID = place(n.pets, v.ID)
		return v
	case animalstore.Order:
		v.ID, v.PetID = place(n.orders, v.ID), place(n.pets, v.PetID)
		return v
	case animalstore.Photo:
		v.ID, v.PetID = place(n.photos, v.ID), place(n.pets, v.PetID)
		return v
	case []animalstore.Photo:
		for i := range v {
			v[i] = n.places(v[i]).(animalstore.Photo)
		}
		return v
	case animalstore.Key:
		v.ID = place(n.keys, v.ID)
		return v
	case []animalstore.Key:
		for i := range v {
			v[i].ID = place(n.keys, v[i].ID)
		}
		return v
	case []animalstore.Usage:
		for i := range v {
			v[i].KeyID = place(n.keys, v[i].KeyID)
		}
		return v
	case []any:
		for i := range v {
			v[i] = n.places(v[i])
		}
		return v
	}
	return got
}

// still returns a fixed time, plus or minus a day.
func still(draw func(int) int) animalstore.Time {
	return animalstore.At(noon.Add(time.Duration(draw(5)-2) * 12 * time.Hour))
}

func (n *numbered) retry(draw func(int) int) *db.Idempotency {
	if draw(3) == 0 {
		return nil
	}
	return &db.Idempotency{KeyID: int64(draw(2)), Operation: oneOf(draw, "a", "b"), Token: fmt.Sprint(draw(6)), BodyHash: [32]byte{byte(draw(8) / 7)}, At: still(draw)}
}

func drawStatus(draw func(int) int) animalstore.PetStatus {
	return oneOf[animalstore.PetStatus](draw, "", "available", "available", "pending", "sold")
}

func drawCategory(draw func(int) int) int64 {
	return oneOf[int64](draw, 0, 1, 2, -1, 1<<62)
}

func drawHash(draw func(int) int) db.KeyHash { return hashOf(fmt.Sprint(draw(40))) }

// calls are those operations, and what they need.
var calls = []call{
	{"CreatePet", func(ctx context.Context, n *numbered, draw func(int) int) (any, error) {
		p := animalstore.NewPet{Name: fmt.Sprint("pet ", n.step), CategoryID: drawCategory(draw), Status: drawStatus(draw)}
		pet, replayed, err := n.db.CreatePet(ctx, p, n.retry(draw))
		if err == nil && !replayed {
			n.pets = append(n.pets, pet.ID)
		}
		return []any{pet, replayed}, err
	}},
	{"DeletePet", func(ctx context.Context, n *numbered, draw func(int) int) (any, error) {
		return nil, n.db.DeletePet(ctx, some(n.pets, draw), (*animalstore.Pet).CheckRemovable)
	}},
	{"AddPhoto", func(ctx context.Context, n *numbered, draw func(int) int) (any, error) {
		retry := n.retry(draw)
		if retry != nil {
			retry.Operation = "photo" // PostgreSQL skips ids of photos that are refused, which no record of another resource may show
		}
		photo, replayed, err := n.db.AddPhoto(ctx, newPhoto(some(n.pets, draw), 1+draw(500), byte(n.step)), int64(1+draw(20))*300, retry)
		if err == nil && !replayed {
			n.photos = append(n.photos, photo.ID)
		}
		return []any{photo, replayed}, err
	}},
	{"Photo", func(ctx context.Context, n *numbered, draw func(int) int) (any, error) {
		return n.db.Photo(ctx, some(n.photos, draw))
	}},
	{"Photos", func(ctx context.Context, n *numbered, draw func(int) int) (any, error) {
		q := db.PhotoQuery{PetIDs: []int64{some(n.pets, draw), some(n.pets, draw)}, Limit: 1 + draw(5)}
		if draw(3) == 0 {
			q.After = some(n.photos, draw)
		}
		return n.db.Photos(ctx, q)
	}},
	{"DeletePhoto", func(ctx context.Context, n *numbered, draw func(int) int) (any, error) {
		return nil, n.db.DeletePhoto(ctx, some(n.photos, draw), noPhotoCheck)
	}},
	{"Image", func(ctx context.Context, n *numbered, draw func(int) int) (any, error) {
		return n.db.Image(ctx, some(n.photos, draw), db.ImageKind(draw(2)))
	}},
	{"ImagePart", func(ctx context.Context, n *numbered, draw func(int) int) (any, error) {
		return n.db.ImagePart(ctx, some(n.photos, draw), db.ImageKind(draw(2)), draw(8)/7)
	}},
	{"PlaceOrder", func(ctx context.Context, n *numbered, draw func(int) int) (any, error) {
		order, replayed, err := n.db.PlaceOrder(ctx, some(n.pets, draw), noon, n.retry(draw))
		if err == nil && !replayed {
			n.orders = append(n.orders, order.ID)
		}
		return []any{order, replayed}, err
	}},
	{"UpdateOrder", func(ctx context.Context, n *numbered, draw func(int) int) (any, error) {
		to := oneOf(draw, animalstore.OrderStatuses...)
		return n.db.UpdateOrder(ctx, some(n.orders, draw), func(o *animalstore.Order) error { return o.Move(to, later) })
	}},
	{"CreateKey", func(ctx context.Context, n *numbered, draw func(int) int) (any, error) {
		key, err := n.db.CreateKey(ctx, drawKey(n, draw), drawHash(draw), still(draw))
		if err == nil {
			n.keys = append(n.keys, key.ID)
		}
		return key, err
	}},
	{"CreateFirstKey", func(ctx context.Context, n *numbered, draw func(int) int) (any, error) {
		created, err := n.db.CreateFirstKey(ctx, drawKey(n, draw), drawHash(draw), noon)
		if created {
			keys, err := n.db.Keys(ctx, db.KeyQuery{Limit: 1})
			if err != nil {
				return nil, err
			}
			n.keys = append(n.keys, keys[0].ID)
		}
		return created, err
	}},
	{"KeyByHash", func(ctx context.Context, n *numbered, draw func(int) int) (any, error) {
		key, found, err := n.db.KeyByHash(ctx, drawHash(draw))
		return []any{key, found}, err
	}},
	{"Key", func(ctx context.Context, n *numbered, draw func(int) int) (any, error) {
		return n.db.Key(ctx, some(n.keys, draw))
	}},
	{"Keys", func(ctx context.Context, n *numbered, draw func(int) int) (any, error) {
		q := db.KeyQuery{Limit: 1 + draw(10)}
		if draw(2) == 0 {
			q.Before = some(n.keys, draw)
		}
		return n.db.Keys(ctx, q)
	}},
	{"UpdateKey", func(ctx context.Context, n *numbered, draw func(int) int) (any, error) {
		what, seen := draw(6), false
		at := still(draw)
		key, err := n.db.UpdateKey(ctx, some(n.keys, draw), at, func(k *animalstore.Key, otherAdmin bool) error {
			seen = otherAdmin
			switch what {
			case 0:
				return errNotNow
			case 1:
				k.Revoke(at)
			case 2:
				k.ExpiresAt = at
			case 3:
				k.Permissions = animalstore.Admin
			case 4:
				k.UnbannedAt = at
			case 5:
				k.Name = fmt.Sprint("renamed ", n.step)
			}
			return nil
		})
		return []any{key, seen}, err
	}},
	{"RotateKey", func(ctx context.Context, n *numbered, draw func(int) int) (any, error) {
		return n.db.RotateKey(ctx, some(n.keys, draw), db.KeyRotation{Hash: drawHash(draw), At: still(draw), OldUntil: still(draw)}, nil)
	}},
	{"SaveUsage", func(ctx context.Context, n *numbered, draw func(int) int) (any, error) {
		var usage []animalstore.Usage
		for range draw(4) {
			usage = append(usage, animalstore.Usage{KeyID: some(n.keys, draw), Hour: still(draw), Admitted: int64(draw(9)), Refused: int64(draw(9)), LastUsed: still(draw)})
		}
		return nil, n.db.SaveUsage(ctx, usage)
	}},
	{"Usage", func(ctx context.Context, n *numbered, draw func(int) int) (any, error) {
		return n.db.Usage(ctx, some(n.keys, draw), still(draw))
	}},
	{"LimitState", func(ctx context.Context, n *numbered, draw func(int) int) (any, error) {
		return n.db.LimitState(ctx, some(n.keys, draw))
	}},
	{"SaveLimitStates", func(ctx context.Context, n *numbered, draw func(int) int) (any, error) {
		var states []db.KeyLimitState
		for range draw(4) {
			s := db.KeyLimitState{KeyID: some(n.keys, draw)}
			s.Minute.Used, s.Day.End, s.BanLevel = int64(draw(9)), int64(draw(9)), int64(draw(9))
			s.Day.Used, s.BannedAt, s.DayShortened = int64(draw(3)), int64(draw(3)), draw(4) == 0
			states = append(states, s)
		}
		return nil, n.db.SaveLimitStates(ctx, states)
	}},
	{"CreateSession", func(ctx context.Context, n *numbered, draw func(int) int) (any, error) {
		return nil, n.db.CreateSession(ctx, db.Session{Hash: drawHash(draw), Secret: drawHash(draw), ExpiresAt: still(draw)})
	}},
	{"Session", func(ctx context.Context, n *numbered, draw func(int) int) (any, error) {
		return n.db.Session(ctx, drawHash(draw))
	}},
	{"DeleteSession", func(ctx context.Context, n *numbered, draw func(int) int) (any, error) {
		return nil, n.db.DeleteSession(ctx, drawHash(draw))
	}},
	{"UseForm", func(ctx context.Context, n *numbered, draw func(int) int) (any, error) {
		return nil, n.db.UseForm(ctx, drawHash(draw), still(draw))
	}},
	{"Ping", func(ctx context.Context, n *numbered, _ func(int) int) (any, error) { return nil, n.db.Ping(ctx) }},
}

func drawKey(n *numbered, draw func(int) int) animalstore.NewKey {
	k := animalstore.NewKey{
		Name: fmt.Sprint("key ", n.step), Plan: animalstore.PlanFree, Limits: animalstore.Limits{PerMinute: 60, PerDay: 1000},
		Permissions: oneOf(draw, animalstore.Read, animalstore.Write, animalstore.Admin), Environment: oneOf(draw, animalstore.Production, animalstore.Staging),
	}
	if draw(3) == 0 {
		k.ExpiresAt = still(draw)
	}
	return k
}
