package api_test

import (
	"fmt"
	"testing"
	"time"

	"animalstore"
)

// TestPetStatusMoves goes through all moves of a pet, free and ordered.
func TestPetStatusMoves(t *testing.T) {
	s := start(t)
	allowed := map[[2]animalstore.PetStatus]bool{
		{"available", "pending"}: true, {"available", "sold"}: true,
		{"pending", "available"}: true, {"pending", "sold"}: true,
	}
	for _, from := range animalstore.PetStatuses {
		for _, to := range animalstore.PetStatuses {
			t.Run(fmt.Sprintf("%s to %s", from, to), func(t *testing.T) {
				pet := s.addOne(t, from)
				got := s.do(t, patch(petPath(pet.ID), fmt.Sprintf(`{"status":%q}`, to)))
				if from == to || allowed[[2]animalstore.PetStatus{from, to}] {
					pet.Status = to
					if read[animalstore.Pet](t, got, 200) != pet {
						t.Errorf("got %v, want %+v", got, pet)
					}
				} else {
					got.want(t, 409, animalstore.InvalidTransition)
					got.wantMessage(t, fmt.Sprint("pet ", pet.ID), "sold", "final")
				}
				if stored := s.pet(t, pet.ID); stored != pet {
					t.Errorf("stored is %+v, want %+v", stored, pet)
				}
			})
		}
	}
	// A pet with an open order is pending, and only the order changes that.
	for _, steps := range [][]animalstore.OrderStatus{nil, {"approved"}} {
		for _, to := range animalstore.PetStatuses {
			t.Run(fmt.Sprintf("ordered %v to %s", steps, to), func(t *testing.T) {
				pet := s.addOne(t, "available")
				s.order(t, pet.ID, steps...)
				pet.Status = "pending"
				got := s.do(t, patch(petPath(pet.ID), fmt.Sprintf(`{"name":"never","status":%q}`, to)))
				if to == "pending" {
					pet.Name = "never"
					got.want(t, 200, "")
				} else {
					got.want(t, 409, animalstore.InvalidTransition)
					got.wantMessage(t, fmt.Sprint("pet ", pet.ID), "open order")
				}
				if stored := s.pet(t, pet.ID); stored != pet {
					t.Errorf("stored is %+v, want %+v", stored, pet)
				}
				removed := s.do(t, remove(petPath(pet.ID)))
				removed.want(t, 409, animalstore.InvalidTransition)
				removed.wantMessage(t, fmt.Sprint("pet ", pet.ID), "open order", "deliver or cancel")
				s.do(t, patch(petPath(pet.ID), `{"name":"free to change","categoryId":3}`)).want(t, 200, "")
			})
		}
	}
	// A closed order holds nothing any more.
	for _, c := range []struct {
		steps []animalstore.OrderStatus
		to    animalstore.PetStatus
		want  int
	}{
		{stepsTo["cancelled"], "pending", 200}, {stepsTo["cancelled"], "sold", 200},
		{stepsTo["delivered"], "sold", 200}, {stepsTo["delivered"], "available", 409},
	} {
		t.Run(fmt.Sprintf("once %v to %s", c.steps, c.to), func(t *testing.T) {
			pet := s.addOne(t, "available")
			s.order(t, pet.ID, c.steps...)
			got := s.do(t, patch(petPath(pet.ID), fmt.Sprintf(`{"status":%q}`, c.to)))
			if got.status != c.want {
				t.Errorf("got %v, want %d", got, c.want)
			}
			s.do(t, remove(petPath(pet.ID))).want(t, 204, "")
		})
	}
}

func TestPatchPet(t *testing.T) {
	s := start(t)
	for _, test := range []struct {
		name, body string
		want       animalstore.Pet // without its id
	}{
		{"nothing", `{}`, animalstore.Pet{Name: "Rex", CategoryID: 7, Status: "available"}},
		{"name", `{"name":" Zoë <&> 🦊 "}`, animalstore.Pet{Name: " Zoë <&> 🦊 ", CategoryID: 7, Status: "available"}},
		{"category", `{"categoryId":-9223372036854775808}`, animalstore.Pet{Name: "Rex", CategoryID: -1 << 63, Status: "available"}},
		{"category as 1e2", `{"categoryId":1e2}`, animalstore.Pet{Name: "Rex", CategoryID: 100, Status: "available"}},
		{"all", `{"status":"sold","categoryId":0,"name":"Max"}`, animalstore.Pet{Name: "Max", CategoryID: 0, Status: "sold"}},
		{"unknown fields", `{"id":99,"Name":"never","tags":[null],"status":"pending"}`, animalstore.Pet{Name: "Rex", CategoryID: 7, Status: "pending"}},
	} {
		for _, mediaType := range []string{"application/json", "application/merge-patch+json", "application/merge-patch+json; charset=utf-8", ""} {
			t.Run(test.name+" as "+mediaType, func(t *testing.T) {
				pet := s.addOne(t, "available")
				c := patch(petPath(pet.ID), test.body)
				c.header["Content-Type"] = []string{mediaType}
				if mediaType == "" {
					c.header["Content-Type"], c.bad = nil, true
				}
				test.want.ID = pet.ID
				if got := read[animalstore.Pet](t, s.do(t, c), 200); got != test.want {
					t.Errorf("got %+v, want %+v", got, test.want)
				}
				if got := read[animalstore.Pet](t, s.do(t, call{path: petPath(pet.ID)}), 200); got != test.want {
					t.Errorf("read %+v, want %+v", got, test.want)
				}
			})
		}
	}
}

func TestMergePatchOnlyOnPatch(t *testing.T) {
	s := start(t)
	pet := s.addOne(t, "available")
	merge := []string{"Content-Type", "application/merge-patch+json"}
	for _, c := range []call{
		post("/v1/pets", `{"name":"Rex","categoryId":1}`), post("/v1/store/orders", fmt.Sprintf(`{"petId":%d}`, pet.ID)), put("/v1/categories/7", `{"name":"cats"}`),
	} {
		got := s.do(t, bad(with(c, merge...)))
		got.want(t, 415, animalstore.UnsupportedMediaType)
		got.wantMessage(t, "Content-Type: application/json")
	}
	order := s.order(t, pet.ID)
	s.do(t, with(patch(orderPath(order.ID), `{"status":"approved"}`), merge...)).want(t, 200, "")
	for _, path := range []string{petPath(pet.ID), orderPath(order.ID)} {
		got := s.do(t, bad(with(patch(path, `{"status":"sold"}`), "Content-Type", "application/json-patch+json")))
		got.want(t, 415, animalstore.UnsupportedMediaType)
		got.wantMessage(t, "application/json or application/merge-patch+json")
	}
}

func TestDeletePet(t *testing.T) {
	s := start(t)
	for _, status := range animalstore.PetStatuses {
		pets := s.add(t, animalstore.NewPet{Name: "before", Status: status}, animalstore.NewPet{Name: "Rex", Status: status}, animalstore.NewPet{Name: "after", Status: status})
		path := petPath(pets[1].ID)
		got := s.do(t, remove(path))
		if got.want(t, 204, ""); len(got.body) != 0 {
			t.Errorf("got body %s, want none", got.body)
		}
		for _, c := range []call{remove(path), patch(path, `{"name":"x"}`), {path: path}, post("/v1/store/orders", fmt.Sprintf(`{"petId":%d}`, pets[1].ID))} {
			again := s.do(t, c)
			again.want(t, 404, animalstore.PetNotFound)
			again.wantMessage(t, fmt.Sprint(pets[1].ID))
		}
		for _, path := range []string{"/v1/pets?limit=2", "/v1/pets?limit=2&status=" + string(status)} {
			if found := ids(s.do(t, call{path: path}).pets(t)); found[0] != pets[2].ID || found[1] != pets[0].ID {
				t.Errorf("%s: got %d, want %d and %d", path, found, pets[2].ID, pets[0].ID)
			}
		}
	}
}

// TestGetPetGoesAlone: the end of getPet is not that of its path.
func TestGetPetGoesAlone(t *testing.T) {
	s := start(t)
	pet := s.addOne(t, "available")
	s.clock.set(time.Date(2030, 12, 5, 0, 0, 0, 0, time.UTC))
	s.do(t, call{path: petPath(pet.ID)}).want(t, 410, animalstore.EndpointRemoved)
	changed := s.do(t, patch(petPath(pet.ID), `{"name":"Max"}`))
	changed.want(t, 200, "")
	for _, name := range []string{"Deprecation", "Sunset", "Link"} {
		if value := changed.header.Get(name); value != "" {
			t.Errorf("%s of PATCH: got %q, want none", name, value)
		}
	}
	s.do(t, remove(petPath(pet.ID), "If-Match", changed.header.Get("ETag"))).want(t, 204, "")
}
