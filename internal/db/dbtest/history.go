package dbtest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/testenv"

	"github.com/anishathalye/porcupine"
	"pgregory.net/rapid"
)

// sequences runs random operations by one caller and compares each outcome with the
// model's.
func sequences(t *testing.T, open func(*testing.T) db.DB) {
	d := open(t)
	model, ids := newStore(), &pool{}
	rapid.Check(t, func(rt *rapid.T) {
		source := func(n int) int { return rapid.IntRange(0, n-1).Draw(rt, "n") }
		for range rapid.IntRange(1, 30).Draw(rt, "operations") {
			op := ids.operation(source)
			got, err := runOperation(t.Context(), d, op)
			if err != nil {
				rt.Fatal(err)
			}
			ids.learn(got)
			if want := op.expect(model, got); !reflect.DeepEqual(got, want) {
				rt.Fatalf("%T%+v\ngot  %+v\nwant %+v", op, op, got, want)
			}
		}
	})
	checkAgreement(t, d)
}

// linearizable runs random operations by several callers at once: there must be an
// order of the calls, each between its start and its end, in which the model has the
// same outcomes. A list depends on all pets, so histories can't be split and must be
// short.
func linearizable(t *testing.T, open func(*testing.T) db.DB) {
	for round := range testenv.Count(8, 2000) {
		t.Run(fmt.Sprint(round), func(t *testing.T) { // closes the database at its end
			d := open(t)
			history := record(t, d, uint64(round), 5, 30)
			checkHistory(t, history)
			checkIDs(t, history)
			checkAgreement(t, d)
		})
	}
}

// record runs clients concurrently and returns their calls and outcomes.
func record(t *testing.T, d db.DB, seed uint64, clients, each int) []porcupine.Operation {
	t.Helper()
	var clock atomic.Int64 // only the order matters
	ids := &pool{}
	histories := make([][]porcupine.Operation, clients)
	together(t, clients, func(i int) error {
		source := rand.New(rand.NewPCG(seed, uint64(i))).IntN
		for range each {
			op := ids.operation(source)
			called := clock.Add(1)
			got, err := runOperation(t.Context(), d, op)
			if err != nil {
				return err
			}
			histories[i] = append(histories[i], porcupine.Operation{ClientId: i, Input: op, Call: called, Output: got, Return: clock.Add(1)})
			ids.learn(got)
		}
		return nil
	})
	return slices.Concat(histories...)
}

var storeModel = porcupine.Model{
	Init: func() any { return newStore() },
	Step: func(state, input, output any) (bool, any) {
		after := state.(*store).clone()
		want := input.(operation).expect(after, output.(outcome))
		return reflect.DeepEqual(want, output), after
	},
	Equal: func(a, b any) bool { return a.(*store).equal(b.(*store)) },
}

func checkHistory(t *testing.T, history []porcupine.Operation) {
	t.Helper()
	switch porcupine.CheckOperationsTimeout(storeModel, history, time.Minute) {
	case porcupine.Ok:
	case porcupine.Unknown:
		t.Error("the search for an order took too long: make the histories shorter")
	case porcupine.Illegal:
		slices.SortFunc(history, func(a, b porcupine.Operation) int { return int(a.Call - b.Call) })
		var text strings.Builder
		for _, op := range history {
			fmt.Fprintf(&text, "%4d–%4d client %2d %T%+v\n\t→ %+v\n", op.Call, op.Return, op.ClientId, op.Input, op.Input, op.Output)
		}
		t.Fatalf("no order of these calls explains their outcomes:\n%s", &text)
	}
}

// checkIDs checks that a pet or order has a higher id than those whose creation had
// returned before it began.
func checkIDs(t *testing.T, history []porcupine.Operation) {
	t.Helper()
	created := map[string][]porcupine.Operation{}
	id := func(op porcupine.Operation) int64 { return op.Output.(outcome).Pet.ID + op.Output.(outcome).Order.ID }
	for _, op := range history {
		switch op.Input.(type) {
		case createPet, placeOrder:
			if id(op) != 0 {
				kind := fmt.Sprintf("%T", op.Input)
				created[kind] = append(created[kind], op)
			}
		}
	}
	for kind, all := range created {
		for _, a := range all {
			for _, b := range all {
				if a.Return < b.Call && id(a) >= id(b) {
					t.Errorf("%s: id %d was assigned after id %d, want a higher one", kind, id(b), id(a))
				}
			}
		}
	}
}

// checkAgreement checks an idle store: a pet has at most one open order and is then
// pending, and a delivered pet is sold.
func checkAgreement(t *testing.T, d db.DB) {
	t.Helper()
	pets := map[int64]animalstore.Pet{}
	for _, p := range mustList(t, d, animalstore.PetQuery{}, db.Page{Limit: 1 << 20}) {
		pets[p.ID] = p
	}
	orders, err := d.Orders(t.Context(), animalstore.OrderQuery{}, db.Page{Limit: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	holder := map[int64]int64{} // the open order of a pet
	for _, o := range orders {
		pet, exists := pets[o.PetID]
		switch {
		case o.Status.Open() && pet.Status != animalstore.PetPending:
			t.Errorf("order %d is %s and its pet is %+v, want it pending", o.ID, o.Status, pet)
		case o.Status.Open() && holder[o.PetID] != 0:
			t.Errorf("orders %d and %d are both open on pet %d", o.ID, holder[o.PetID], o.PetID)
		case o.Status == animalstore.OrderDelivered && exists && pet.Status != animalstore.PetSold:
			t.Errorf("order %d is delivered and its pet is %+v, want it sold or gone", o.ID, pet)
		}
		if o.Status.Open() {
			holder[o.PetID] = o.ID
		}
	}
	for id := range pets {
		err := d.DeletePet(t.Context(), id, func(_ *animalstore.Pet, ordered bool) error {
			if ordered != (holder[id] != 0) {
				t.Errorf("pet %d: ordered is %t, want %t", id, ordered, holder[id] != 0)
			}
			return errNotNow
		})
		if !errors.Is(err, errNotNow) {
			t.Errorf("DeletePet(%d): %v, want check's error", id, err)
		}
	}
}

var errNotNow = errors.New("not now")

// runOperation calls d. It returns an error only if no caller should ever get it.
func runOperation(ctx context.Context, d db.DB, op operation) (got outcome, err error) {
	switch o := op.(type) {
	case createPet:
		got.Pet, _, err = d.CreatePet(ctx, o.Pet, nil)
	case getPet:
		got.Pet, err = d.Pet(ctx, o.ID)
	case changePet:
		got.Pet, err = d.UpdatePet(ctx, o.ID, func(p *animalstore.Pet, ordered bool) error {
			if o.Name != "" {
				p.Name = o.Name
			}
			if o.Category != 0 {
				p.CategoryID = o.Category
			}
			if o.Status != "" {
				return p.SetStatus(o.Status, ordered)
			}
			return nil
		})
	case deletePet:
		err = d.DeletePet(ctx, o.ID, func(p *animalstore.Pet, ordered bool) error {
			got.Pet = *p
			return p.CheckRemovable(ordered)
		})
	case listPets:
		got.Pets, err = d.Pets(ctx, o.Query, o.Page)
	case countPets:
		got.Inventory, err = d.CountPets(ctx, o.Category)
	case placeOrder:
		got.Order, _, err = d.PlaceOrder(ctx, animalstore.NewOrder{PetID: o.Pet, Reference: o.Reference}, o.At, nil)
	case getOrder:
		got.Order, err = d.Order(ctx, o.ID)
	case moveOrder:
		got.Order, err = d.UpdateOrder(ctx, o.ID, func(order *animalstore.Order) error { return order.Move(o.To, o.At) })
	case listOrders:
		got.Orders, err = d.Orders(ctx, o.Query, o.Page)
	case getCategory:
		got.Category, err = d.Category(ctx, o.ID)
	case putCategory:
		got.Created, err = d.PutCategory(ctx, o.Category, func(before *animalstore.Category) error {
			if before != nil {
				got.Category = *before
			}
			return nil
		})
	case listCategories:
		got.Categories, err = d.Categories(ctx, o.Query)
	}
	var coded *animalstore.Error
	switch {
	case errors.As(err, &coded):
		return refused(coded.Code), nil
	case errors.Is(err, db.ErrNotFound):
		return refused(notFound), nil
	case err != nil:
		return got, fmt.Errorf("%T%+v: %w", op, op, err)
	}
	return got, nil
}

// pool contains the ids assigned so far, so that concurrent calls use the same ids.
type pool struct {
	mu           sync.Mutex
	pets, orders []int64
	at           int64
}

func (p *pool) learn(got outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if id := got.Pet.ID; id != 0 && !slices.Contains(p.pets, id) {
		p.pets = append(p.pets, id)
	}
	if id := got.Order.ID; id != 0 && !slices.Contains(p.orders, id) {
		p.orders = append(p.orders, id)
	}
}

// oddNames are easily changed on the way to a database and back.
var oddNames = []string{
	"Rex", "  kept  as sent ", "line\nbreak\ttab \"quote\" 'single' \\ % _ ; -- $1 ?1",
	"Zo\u00eb", "Zoe\u0308", // composed and decomposed stay different
	"دب قطبي", "🐻‍❄️", "\u200bx\ufeff\ufffd", strings.Repeat("🦊", animalstore.MaxNameLength-20),
}

// someCategories are few, so that they have many pets.
var someCategories = []int64{0, 1, math.MinInt64, math.MaxInt64}

// operation draws an operation, mostly on recent ids.
func (p *pool) operation(draw func(n int) int) operation {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.at++
	at := animalstore.AtMilli(1e12 + p.at)
	pet, order := recent(draw, p.pets), recent(draw, p.orders)
	name, category := fmt.Sprint(p.at, oneOf(draw, oddNames...)), oneOf(draw, someCategories...)
	limit := oneOf(draw, 1, 2, 3, 5, 101)
	switch draw(25) {
	case 0, 1:
		return createPet{animalstore.NewPet{Name: name, CategoryID: category, Status: oneOf[animalstore.PetStatus](draw, "", "available", "available", "pending", "sold")}}
	case 2:
		return getPet{pet}
	case 3, 4, 5:
		change := changePet{ID: pet, Status: oneOf[animalstore.PetStatus](draw, "", "available", "available", "pending", "sold")}
		if draw(2) == 0 {
			change.Name, change.Category = name, category
		}
		return change
	case 6, 20:
		return deletePet{pet}
	case 7, 8, 9:
		return placeOrder{pet, oneOf[animalstore.OptionalText](draw, "", "A 1", "a 1"), at}
	case 10:
		return getOrder{order}
	case 11, 12, 13:
		return moveOrder{order, oneOf(draw, animalstore.OrderStatuses...), at}
	case 14, 15, 21:
		q, page := animalstore.PetQuery{Status: oneOf(draw, append(animalstore.PetStatuses, "", "", "")...)}, db.Page{Limit: limit}
		if draw(3) == 0 {
			q.CategoryID = &category
		}
		if draw(2) == 0 {
			page.After = oneOf(draw, pet, pet+1, 1, math.MaxInt64)
		}
		if draw(4) == 0 {
			q.IDs = []int64{math.MaxInt64, math.MinInt64, -1, 0, pet, recent(draw, p.pets), pet}[oneOf(draw, 0, 4, 6, 6):]
		}
		return listPets{q, page}
	case 16, 22, 23:
		first := draw(len(animalstore.OrderStatuses))
		q := animalstore.OrderQuery{Oldest: draw(2) == 0, Statuses: animalstore.OrderStatuses[first:][:draw(5-first)]}
		page := db.Page{Limit: limit}
		if draw(2) == 0 {
			page.After = oneOf(draw, order, order+1, 1, math.MaxInt64)
		}
		if draw(3) == 0 {
			q.PetID = pet
		}
		if draw(3) == 0 {
			q.Reference = "A 1"
		}
		return listOrders{q, page}
	case 17:
		return getCategory{category}
	case 18:
		return putCategory{animalstore.Category{ID: category, Name: name}}
	case 19:
		if draw(3) == 0 {
			return countPets{}
		}
		return countPets{&category}
	}
	if draw(2) == 0 {
		return listCategories{db.CategoryQuery{After: new(oneOf(draw, category, 3, -100)), Limit: limit}}
	}
	return listCategories{db.CategoryQuery{Limit: limit}}
}

func oneOf[T any](draw func(int) int, all ...T) T { return all[draw(len(all))] }

// recent returns one of the last few ids, or rarely one that was never assigned.
func recent(draw func(int) int, ids []int64) int64 {
	last := len(ids)
	if last == 0 || draw(30) == 0 {
		return 1 << 40
	}
	return ids[last-1-draw(min(last, 3))]
}
