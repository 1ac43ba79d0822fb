package assistant_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"animalstore"
)

// jobs are what a shop asks an assistant to do. most is how many calls of tools each may take.
var jobs = []struct {
	name string
	most int
	do   func(j *job)
}{
	{"sell the pet that a customer describes", 4, sellDescribed},
	{"say what has changed since yesterday", 1, changesSinceYesterday},
	{"clean up a category", 5, cleanUpCategory},
	{"add five pets", 1, addFive},
	{"explain an order that is refused", 2, refusedOrder},
	{"wait as long as the limit says", 3, reachLimit},
	{"ask which of two pets with a similar name is meant", 1, ambiguousName},
	{"show a photo", 2, showPhoto},
	{"approve the orders that have waited longest", 3, oldestOrders},
	{"find out who changed a pet", 2, whoChanged},
}

// TestJobs does each job with the tools alone, over both connections, and counts the calls.
func TestJobs(t *testing.T) {
	connections := map[string]func(*store, string) *session{"HTTP": (*store).overHTTP, "pipes": (*store).overPipes}
	for name, connect := range connections {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, test := range jobs {
				s := start(t)
				j := &job{t: t, s: s, connect: func(key string) *session { return connect(s, key) }}
				key, _ := s.Key("assistant", animalstore.Read|animalstore.Write, 1<<30)
				j.session = j.connect(key)
				test.do(j)
				t.Logf("%s: %d calls", test.name, j.calls)
				if j.calls > test.most || j.calls == 0 {
					t.Errorf("%s: got %d calls, want at most %d", test.name, j.calls, test.most)
				}
			}
		})
	}
}

// job is an assistant at work.
type job struct {
	*session
	t       *testing.T
	s       *store
	connect func(key string) *session
	calls   int
}

// use calls a tool and reads its result.
func (j *job) use(tool string, result any, arguments string, values ...any) {
	j.t.Helper()
	j.calls++
	j.get(tool, fmt.Sprintf(arguments, values...), result)
}

// refused calls a tool that fails.
func (j *job) refused(tool string, code animalstore.Code, arguments string, values ...any) refusal {
	j.t.Helper()
	j.calls++
	return j.wantRefused(tool, fmt.Sprintf(arguments, values...), code)
}

type (
	foundPets   struct{ Pets []animalstore.Pet }
	foundOrders struct{ Orders []animalstore.Order }
	categories  struct{ Categories []animalstore.Category }
	changeList  struct{ Changes []animalstore.Event }
)

// want fails the test if a condition doesn't hold.
func (j *job) want(ok bool, got any) {
	j.t.Helper()
	if !ok {
		j.t.Fatalf("got %+v", got)
	}
}

// sellDescribed: "the fluffy one".
func sellDescribed(j *job) {
	mochi := j.s.Pet("Mochi the Fluffy")
	j.s.Pet("Rex")
	var found foundPets
	j.use("find_pets", &found, `{"name":"fluff","status":"available"}`)
	j.want(len(found.Pets) == 1 && found.Pets[0].ID == mochi.ID, found)
	var order animalstore.Order
	j.use("place_order", &order, `{"petId":%d,"note":"collects today"}`, found.Pets[0].ID)
	j.use("change_order", &order, `{"orderId":%d,"status":"approved"}`, order.ID)
	j.use("change_order", &order, `{"orderId":%d,"status":"delivered"}`, order.ID)
	j.want(order.Status == animalstore.OrderDelivered, order)
}

func changesSinceYesterday(j *job) {
	j.s.Pet("Rex")
	j.s.Pet("Mia")
	var recent changeList
	yesterday := time.Now().AddDate(0, 0, -1).UTC().Format(time.RFC3339)
	j.use("recent_changes", &recent, `{"since":%q,"limit":100}`, yesterday)
	j.want(len(recent.Changes) == 3 && recent.Changes[0].Type == animalstore.PetCreated, recent)
}

// cleanUpCategory names a category, moves a pet that is in the wrong one, and removes a
// duplicate.
func cleanUpCategory(j *job) {
	rex, tom := j.s.Pet("Rex"), j.s.Pet("Tom the Cat")
	twice := j.s.Pet("Rex")
	var all categories
	j.use("list_categories", &all, `{}`)
	j.want(len(all.Categories) == 1 && all.Categories[0].Name == "", all)
	var found foundPets
	j.use("find_pets", &found, `{"categoryId":%d,"limit":100}`, all.Categories[0].ID)
	j.want(len(found.Pets) == 3, found)
	var category animalstore.Category
	j.use("name_category", &category, `{"categoryId":%d,"name":"Dogs"}`, all.Categories[0].ID)
	j.want(category.Name == "Dogs" && category.ID == rex.CategoryID, category)
	var pet animalstore.Pet
	j.use("change_pet", &pet, `{"petId":%d,"categoryId":2}`, tom.ID)
	j.want(pet.CategoryID == 2, pet)
	j.use("remove_pet", &struct{}{}, `{"petId":%d}`, twice.ID)
}

func addFive(j *job) {
	var pets []string
	for _, name := range []string{"Ada", "Bo", "Cleo", "Dino", "Ella"} {
		pets = append(pets, fmt.Sprintf(`{"name":%q,"categoryId":3}`, name))
	}
	var added foundPets
	j.use("add_pets", &added, `{"pets":[%s],"idempotencyKey":"litter-7"}`, strings.Join(pets, ","))
	j.want(len(added.Pets) == 5 && added.Pets[4].Name == "Ella", added)
}

// refusedOrder: the pet has an order, which the assistant shows.
func refusedOrder(j *job) {
	rex := j.s.Pet("Rex")
	j.get("place_order", fmt.Sprintf(`{"petId":%d,"reference":"W-17"}`, rex.ID), &struct{}{}) // another customer
	refused := j.refused("place_order", animalstore.PetNotAvailable, `{"petId":%d}`, rex.ID)
	j.want(refused.Status == 409, refused)
	var orders foundOrders
	j.use("list_orders", &orders, `{"petId":%d,"status":["placed","approved"]}`, rex.ID)
	j.want(len(orders.Orders) == 1 && orders.Orders[0].Reference == "W-17", orders)
}

// reachLimit is told how long to wait, and continues after that.
func reachLimit(j *job) {
	const perMinute = 20
	key, _ := j.s.Key("slow", animalstore.Read, perMinute)
	j.session = j.connect(key)
	for range perMinute {
		j.call("inventory", `{}`) // earlier work
	}
	refused := j.refused("inventory", animalstore.RateLimitExceeded, `{}`)
	j.want(refused.RetryAfter > 0, refused)
	j.s.Advance(time.Duration(refused.RetryAfter) * time.Second)
	j.session = j.connect(key) // the client of a connection waits by a real clock
	var inventory animalstore.Inventory
	j.use("inventory", &inventory, `{}`)
	var status animalstore.LimitStatus
	j.use("limits", &status, `{}`)
	j.want(status.Minute.Limit == perMinute && status.Minute.Remaining > perMinute/2, status)
}

// ambiguousName finds both pets with one call, so that the assistant can ask.
func ambiguousName(j *job) {
	j.s.Pet("Luna")
	j.s.Pet("Little Luna")
	j.s.Pet("Rex")
	var found foundPets
	j.use("find_pets", &found, `{"name":"luna"}`)
	j.want(len(found.Pets) == 2, found)
}

func showPhoto(j *job) {
	j.s.Photo(j.s.Pet("Rex").ID)
	var found foundPets
	j.use("find_pets", &found, `{"name":"rex"}`)
	j.want(len(found.Pets) == 1, found)
	j.calls++
	result := j.call("pet_photo", fmt.Sprintf(`{"petId":%d}`, found.Pets[0].ID))
	j.want(!result.IsError && len(result.Content) == 2, result)
}

func oldestOrders(j *job) {
	for _, name := range []string{"Ada", "Bo", "Cleo"} {
		j.get("place_order", fmt.Sprintf(`{"petId":%d}`, j.s.Pet(name).ID), &struct{}{}) // customers
	}
	var orders foundOrders
	j.use("list_orders", &orders, `{"status":["placed"],"sort":"oldest","limit":2}`)
	j.want(len(orders.Orders) == 2 && orders.Orders[0].ID < orders.Orders[1].ID, orders)
	for _, order := range orders.Orders {
		j.use("change_order", &order, `{"orderId":%d,"status":"approved"}`, order.ID)
		j.want(order.Status == animalstore.OrderApproved, order)
	}
}

func whoChanged(j *job) {
	rex := j.s.Pet("Rex")
	key, _ := j.s.Key("night shift", animalstore.Read|animalstore.Write, 1<<30)
	j.connect(key).get("change_pet", fmt.Sprintf(`{"petId":%d,"name":"Max"}`, rex.ID), &struct{}{})
	var found foundPets
	j.use("find_pets", &found, `{"name":"max"}`)
	j.want(len(found.Pets) == 1, found)
	var recent changeList
	j.use("recent_changes", &recent, `{"petId":%d,"types":["pet.updated"]}`, found.Pets[0].ID)
	j.want(len(recent.Changes) == 1 && *recent.Changes[0].KeyName == "night shift", recent)
}
