package dbtest

import (
	"crypto/sha256"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/testenv"
)

// retryOf identifies a write with a token and a body.
func retryOf(token, body string) *db.Idempotency {
	return &db.Idempotency{KeyID: 1, Operation: "createPet", Token: token, BodyHash: sha256.Sum256([]byte(body)), At: noon}
}

func (o otherwise) of(retry *db.Idempotency) *db.Idempotency {
	changed := *retry
	o(&changed)
	return &changed
}

// otherwise is a change to an Idempotency.
type otherwise func(*db.Idempotency)

var rex = animalstore.NewPet{Name: "Rex", CategoryID: 1}

func mustCreateWith(t *testing.T, d db.DB, p animalstore.NewPet, retry *db.Idempotency, wantReplayed bool) animalstore.Pet {
	t.Helper()
	pet, replayed, err := d.CreatePet(t.Context(), p, retry)
	if err != nil || replayed != wantReplayed {
		t.Fatalf("CreatePet(%+v, %+v) = %+v, replayed %t, %v; want replayed %t", p, retry, pet, replayed, err, wantReplayed)
	}
	return pet
}

func replaysPets(t *testing.T, d db.DB) {
	for _, p := range []animalstore.NewPet{
		rex,
		{Name: "<b>&\"\\\u2028\u2029\t🐻‍❄️ Zoe\u0308\ufffd\x7f", CategoryID: math.MinInt64, Status: animalstore.PetSold},
		{Name: "big", CategoryID: math.MaxInt64, Status: animalstore.PetPending},
	} {
		retry := retryOf("token of "+p.Name, p.Name)
		first := mustCreateWith(t, d, p, retry, false)
		for range 3 {
			if again := mustCreateWith(t, d, p, retry, true); again != first {
				t.Errorf("replay is %+v, want %+v", again, first)
			}
		}
	}
	if got := mustList(t, d, animalstore.PetQuery{}, db.Page{Limit: 10}); len(got) != 3 {
		t.Errorf("got %+v stored, want three", got)
	}
	// The result stays the same, even if the pet changes or is removed.
	retry := retryOf("a", "rex")
	first := mustCreateWith(t, d, rex, retry, false)
	changed := mustUpdatePet(t, d, first.ID, func(p *animalstore.Pet) { p.Name, p.Status = "Max", animalstore.PetSold })
	if got := mustCreateWith(t, d, rex, retry, true); got != first {
		t.Errorf("after a change the replay is %+v, want %+v", got, first)
	}
	wantPet(t, d, changed)
	mustDeletePet(t, d, first.ID)
	if got := mustCreateWith(t, d, rex, retry, true); got != first {
		t.Errorf("after removal the replay is %+v, want %+v", got, first)
	}
}

func replaysOrders(t *testing.T, d db.DB) {
	pet := mustCreatePet(t, d, rex)
	place := func(wantReplayed bool) animalstore.Order {
		t.Helper()
		retry := otherwise(func(o *db.Idempotency) { o.Operation = "placeOrder" }).of(retryOf("a", "body"))
		order, replayed, err := d.PlaceOrder(t.Context(), animalstore.NewOrder{PetID: pet.ID}, noon, retry)
		if err != nil || replayed != wantReplayed {
			t.Fatalf("PlaceOrder = %+v, replayed %t, %v; want replayed %t", order, replayed, err, wantReplayed)
		}
		return order
	}
	first := place(false)
	for _, status := range []animalstore.OrderStatus{animalstore.OrderPlaced, animalstore.OrderApproved, animalstore.OrderDelivered} {
		if status != animalstore.OrderPlaced {
			mustMoveOrder(t, d, first.ID, status)
		}
		if again := place(true); again != first {
			t.Errorf("in status %s the replay is %+v, want %+v", status, again, first)
		}
	}
	mustDeletePet(t, d, pet.ID)
	if again := place(true); again != first {
		t.Errorf("after removal of the pet the replay is %+v, want %+v", again, first)
	}
	if got := mustListOrders(t, d, animalstore.OrderQuery{}, db.Page{Limit: 10}); len(got) != 1 {
		t.Errorf("got %+v stored, want one order", got)
	}
}

func tokensAreApart(t *testing.T, d db.DB) {
	retry := retryOf("a", "rex")
	mustCreateWith(t, d, rex, retry, false)
	_, replayed, err := d.CreatePet(t.Context(), rex, retryOf("a", "another body"))
	wantCode(t, err, animalstore.IdempotencyKeyReused)
	if replayed {
		t.Error("a different body got a replay")
	}
	for name, change := range map[string]otherwise{
		"token":     func(o *db.Idempotency) { o.Token = "b" },
		"case":      func(o *db.Idempotency) { o.Token = "A" },
		"operation": func(o *db.Idempotency) { o.Operation = "other" },
		"key":       func(o *db.Idempotency) { o.KeyID = 2 },
	} {
		t.Run("another "+name, func(t *testing.T) { mustCreateWith(t, d, rex, change.of(retry), false) })
	}
	mustCreateWith(t, d, rex, nil, false)
	mustCreateWith(t, d, rex, nil, false)
	if got := mustList(t, d, animalstore.PetQuery{}, db.Page{Limit: 100}); len(got) != 7 {
		t.Errorf("got %d pets stored, want 7", len(got))
	}
	mustCreateWith(t, d, rex, retry, true)
}

// failuresAreRetried: a failed write leaves no record.
func failuresAreRetried(t *testing.T, d db.DB) {
	pet := mustCreatePet(t, d, animalstore.NewPet{Name: "Rex", CategoryID: 1, Status: animalstore.PetPending})
	retry := retryOf("a", "body")
	for range 2 {
		_, _, err := d.PlaceOrder(t.Context(), animalstore.NewOrder{PetID: pet.ID}, noon, retry)
		wantCode(t, err, animalstore.PetNotAvailable)
	}
	_, _, err := d.PlaceOrder(t.Context(), animalstore.NewOrder{PetID: pet.ID + 1}, noon, retryOf("b", "body"))
	wantNotFound(t, err)
	mustUpdatePet(t, d, pet.ID, func(p *animalstore.Pet) { p.Status = animalstore.PetAvailable })
	order, replayed, err := d.PlaceOrder(t.Context(), animalstore.NewOrder{PetID: pet.ID}, noon, retry)
	if err != nil || replayed {
		t.Fatalf("PlaceOrder after it became available = %+v, replayed %t, %v", order, replayed, err)
	}
	// A different body is refused before its pet is read.
	_, _, err = d.PlaceOrder(t.Context(), animalstore.NewOrder{PetID: 999}, noon, retryOf("a", "another body"))
	wantCode(t, err, animalstore.IdempotencyKeyReused)
}

func recordsExpire(t *testing.T, d db.DB) {
	at := func(after time.Duration) *db.Idempotency {
		return otherwise(func(o *db.Idempotency) { o.At = animalstore.At(noon.Add(after)) }).of(retryOf("a", "rex"))
	}
	first := mustCreateWith(t, d, rex, at(0), false)
	for _, after := range []time.Duration{-time.Hour, 0, db.IdempotencyWindow - time.Millisecond} { // clocks may step back
		if got := mustCreateWith(t, d, rex, at(after), true); got != first {
			t.Errorf("after %v: got %+v, want %+v", after, got, first)
		}
	}
	second := mustCreateWith(t, d, rex, at(db.IdempotencyWindow), false)
	if second.ID == first.ID {
		t.Errorf("after %v: got %+v again", db.IdempotencyWindow, first)
	}
	if got := mustCreateWith(t, d, rex, at(db.IdempotencyWindow+time.Hour), true); got != second {
		t.Errorf("then: got %+v, want %+v", got, second)
	}
	// An expired record is ignored, so a different body is accepted.
	if _, _, err := d.CreatePet(t.Context(), rex, otherwise(func(o *db.Idempotency) {
		o.At = animalstore.At(noon.Add(3 * db.IdempotencyWindow))
		o.BodyHash[0]++
	}).of(retryOf("a", "rex"))); err != nil {
		t.Errorf("a different body after expiry: %v", err)
	}
}

func dropsRecords(t *testing.T, d db.DB) {
	const n = 25
	retry := func(i int) *db.Idempotency {
		return otherwise(func(o *db.Idempotency) { o.At = animalstore.At(noon.Add(time.Duration(i) * time.Second)) }).of(retryOf(fmt.Sprint(i), "rex"))
	}
	for i := range n {
		mustCreateWith(t, d, rex, retry(i), false)
	}
	// Fifteen are before second 15; the one at second 15 is not.
	for i, want := range []int{4, 4, 4, 3, 0} {
		dropped, err := d.DropIdempotencyRecords(t.Context(), retry(15).At, 4)
		if err != nil || dropped != want {
			t.Errorf("step %d: dropped %d, %v, want %d", i, dropped, err, want)
		}
	}
	for i := range n {
		mustCreateWith(t, d, rex, retry(i), i >= 15)
	}
}

// sentManyTimes: however often a write is sent at once, it happens once and all callers
// get its result.
func sentManyTimes(t *testing.T, d db.DB) {
	for round := range testenv.Count(2, 300) {
		pet := mustCreatePet(t, d, rex)
		var mu sync.Mutex
		created, placed, firsts := map[animalstore.Pet]int{}, map[animalstore.Order]int{}, 0
		together(t, 200, func(i int) error {
			retry := retryOf(fmt.Sprint("round ", round), "body")
			if i%2 == 0 {
				got, replayed, err := d.CreatePet(t.Context(), rex, retry)
				mu.Lock()
				defer mu.Unlock()
				created[got]++
				if !replayed {
					firsts++
				}
				return err
			}
			retry.Operation = "placeOrder"
			got, replayed, err := d.PlaceOrder(t.Context(), animalstore.NewOrder{PetID: pet.ID}, noon, retry)
			mu.Lock()
			defer mu.Unlock()
			placed[got]++
			if !replayed {
				firsts++
			}
			return err
		})
		if len(created) != 1 || len(placed) != 1 || firsts != 2 {
			t.Fatalf("got pets %v, orders %v and %d that were not replayed; want one, one and 2", created, placed, firsts)
		}
		if got := mustList(t, d, animalstore.PetQuery{}, db.Page{Limit: 1000}); len(got) != 2*(round+1) {
			t.Fatalf("got %d pets stored, want %d", len(got), 2*(round+1))
		}
		if got := mustListOrders(t, d, animalstore.OrderQuery{PetID: pet.ID}, db.Page{Limit: 10}); len(got) != 1 {
			t.Fatalf("got orders %+v stored, want one", got)
		}
	}
}
