package api_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"animalstore"
	"animalstore/internal/testenv"
)

// TestCursorOutlivesItsRow: the last pet of each page is taken out of the list
// right after it was seen. The next page goes on as if nothing had happened.
func TestCursorOutlivesItsRow(t *testing.T) {
	s := start(t)
	for _, what := range []struct {
		name string
		do   func(path string) call
	}{
		{"is removed", func(path string) call { return remove(path) }},
		{"is sold", func(path string) call { return patch(path, `{"status":"sold"}`) }},
		{"changes its category", func(path string) call { return patch(path, `{"categoryId":2}`) }},
	} {
		for _, filtered := range []petList{{}, {status: "available"}, {category: "1"}, {category: "1", status: "available"}, {ids: "all"}, {ids: "all", category: "1", status: "available"}} {
			t.Run(fmt.Sprintf("%+v, which %s", filtered, what.name), func(t *testing.T) {
				added := s.add(t, slices.Repeat([]animalstore.NewPet{{Name: "Rex", CategoryID: 1}}, 10)...)
				slices.Reverse(added)
				if filtered.ids != "" {
					filtered.ids = strings.Trim(strings.Join(strings.Fields(fmt.Sprint(ids(added))), ","), "[]")
				}
				filtered.limit = 3
				var got []animalstore.Pet
				for next := filtered.path(); next != "" && len(got) < len(added); {
					a := s.do(t, call{path: next})
					page := a.pets(t)
					got = append(got, page...)
					if s.do(t, what.do(petPath(page[len(page)-1].ID))).status >= 300 {
						t.Fatal("the last of the page could not be changed")
					}
					_, next = a.links(t)
				}
				got = slices.DeleteFunc(got, func(p animalstore.Pet) bool { return p.ID < added[9].ID }) // of the rounds before
				if !slices.Equal(got, added) {
					t.Errorf("got %d, want %d", ids(got), ids(added))
				}
			})
		}
	}
}

// TestWalkWhileOthersChange: a client that walks the pages while pets come, change
// and go sees every pet that was there and matched all the time exactly once,
// and none that does not match.
func TestWalkWhileOthersChange(t *testing.T) {
	s := start(t)
	var still, moving []animalstore.Pet // the still ones never change
	for i := range 90 {
		pet := s.add(t, animalstore.NewPet{Name: fmt.Sprint(i), CategoryID: int64(1 + i%2), Status: []animalstore.PetStatus{"available", "available", "sold"}[i%3]})[0]
		if i%3 != 2 && i%4 == 0 {
			moving = append(moving, pet)
		} else {
			still = slices.Insert(still, 0, pet)
		}
	}
	listed := strings.Trim(strings.Join(strings.Fields(fmt.Sprint(ids(append(slices.Clone(still), moving...)))), ","), "[]")
	walks := []petList{
		{limit: 7}, {limit: 100}, {}, {status: "available", limit: 5}, {category: "1", limit: 4}, {category: "2", status: "available", limit: 3},
		{ids: listed, limit: 9}, {ids: listed, status: "available", category: "1", limit: 6},
	}
	quick := s.unchecked()
	var walking, changes atomic.Int64
	walking.Store(int64(len(walks)))
	var group sync.WaitGroup
	for i := range 4 {
		group.Go(func() {
			random := rand.New(rand.NewPCG(1, uint64(i)))
			for walking.Load() > 0 {
				if err := quick.stir(t.Context(), moving, random); err != nil {
					t.Error(err)
					return
				}
				changes.Add(1)
			}
		})
	}
	for _, list := range walks {
		group.Go(func() {
			defer walking.Add(-1)
			for range testenv.Count(2, 200) {
				pages, err := quick.walk(t.Context(), list.path())
				if err != nil {
					t.Errorf("%s: %v", list.path(), err)
					return
				}
				got := slices.Concat(pages...)
				if matching := list.of(got); len(matching) != len(got) {
					t.Errorf("%s: got %+v, want only what matches", list.path(), got)
				}
				if !slices.IsSortedFunc(got, func(a, b animalstore.Pet) int { return int(b.ID - a.ID) }) || len(slices.Compact(ids(got))) != len(got) {
					t.Errorf("%s: got ids %d, want each once and descending", list.path(), ids(got))
				}
				got = slices.DeleteFunc(got, func(p animalstore.Pet) bool { return !slices.Contains(still, p) })
				if want := list.of(still); !slices.Equal(got, want) {
					t.Errorf("%s: of those that stayed got %d, want %d", list.path(), ids(got), ids(want))
				}
			}
		})
	}
	group.Wait()
	if changes.Load() == 0 {
		t.Error("nothing was changed meanwhile: the test showed nothing")
	}
}

// stir changes one of the moving pets, or adds one, which half of the time is removed.
func (s *service) stir(ctx context.Context, moving []animalstore.Pet, random *rand.Rand) error {
	path := petPath(moving[random.IntN(len(moving))].ID)
	calls := [][]call{
		{post("/v1/pets", fmt.Sprintf(`{"name":"new","categoryId":%d,"status":%q}`, 1+random.IntN(2), animalstore.PetStatuses[random.IntN(3)]))},
		{patch(path, fmt.Sprintf(`{"categoryId":%d}`, 1+random.IntN(2)))},
		{patch(path, fmt.Sprintf(`{"status":%q}`, animalstore.PetStatuses[random.IntN(2)]))},
	}[random.IntN(3)]
	for _, c := range calls {
		got, err := s.send(ctx, c)
		if err != nil {
			return err
		}
		if got.status >= 300 {
			return fmt.Errorf("%s %s %s: got %v", c.method, c.path, c.body, got)
		}
		if location := got.header.Get("Location"); location != "" && random.IntN(2) == 0 {
			if _, err := s.send(ctx, remove(location)); err != nil {
				return err
			}
		}
	}
	return nil
}
