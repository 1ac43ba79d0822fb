package console

import (
	"net/http"
	"strconv"

	"animalstore"
	"animalstore/client"
)

type petPage struct {
	frame
	Pet     petRow
	ETag    string
	Once    string             // of an order
	Order   *animalstore.Order // the open one, with its next step; nil if there is none, or its events are gone
	Next    orderMove
	Tag     string // the ETag of Order
	Gallery gallery
	history
}

// Like is the form for another pet like this one.
func (p petPage) Like() string {
	return withQuery("/console/pets/new", "category", categoryLabel(animalstore.Category{ID: p.Pet.CategoryID, Name: p.Pet.Category}))
}

// showPet serves GET /console/pets/{id}.
func (v *visit) showPet() error { return v.showPetWith(http.StatusOK, v.id, gallery{}) }

// showPetWith shows a pet, and which of the photos that were just sent were refused. It makes
// four calls: the open order is known from its events.
func (v *visit) showPetWith(status int, id int64, sent gallery) error {
	pet, etag, err := v.readPet(id)
	if err != nil {
		return err
	}
	p := petPage{Pet: petRow{Pet: pet}, ETag: etag, Once: newOnce()}
	if p.Gallery, err = v.readGallery(pet, sent); err != nil {
		return err
	}
	if p.history, err = v.readHistory("pet", id); err != nil {
		return err
	}
	known, err := v.categoriesOf(pet, p.history)
	if err != nil {
		return err
	}
	p.Pet.Category = known.Name(pet.CategoryID)
	p.nameCategories(known)
	if order := p.openOrder(); order != nil && pet.Status == animalstore.PetPending {
		p.Order, p.Tag = order, v.c.Server.OrderETag(*order)
		if moves := v.movesOf(*order); len(moves) > 0 {
			p.Next = moves[0]
		}
	}
	p.frame = v.frame("Pet " + strconv.FormatInt(id, 10))
	p.Here = petPath(id)
	return v.render(status, "pet", p)
}

// categoriesOf returns the categories that the page of a pet names, with one call.
func (v *visit) categoriesOf(pet animalstore.Pet, h history) (*categories, error) {
	if h.categoryChanged() {
		return v.readCategories()
	}
	category, err := v.api.GetCategory(v.r.Context(), pet.CategoryID)
	if err != nil && codeOf(err) != animalstore.CategoryNotFound {
		return nil, err
	}
	return &categories{known: []animalstore.Category{category}}, nil
}

// readPet returns a pet and the ETag that guards changes of it.
func (v *visit) readPet(id int64) (pet animalstore.Pet, etag string, err error) {
	pet, err = v.api.FindPet(v.r.Context(), id)
	return pet, v.c.Server.PetETag(pet), err
}

type petEditPage struct {
	frame
	Pet     animalstore.Pet
	Form    petForm
	Ordered bool
	Gallery gallery
}

// editPet serves GET /console/pets/{id}/edit.
func (v *visit) editPet() error {
	pet, etag, err := v.readPet(v.id)
	if err != nil {
		return err
	}
	return v.showPetForm(pet, petForm{Name: pet.Name, Status: string(pet.Status), formState: formState{ETag: etag}})
}

// showPetForm shows the form to change a pet. Without a category, it has that of the pet.
func (v *visit) showPetForm(pet animalstore.Pet, form petForm) (err error) {
	if form.Categories == nil {
		if form.Categories, err = v.readCategories(); err != nil {
			return err
		}
	}
	if _, err := v.lookUp(form.Categories, pet.CategoryID); err != nil {
		return err
	}
	if form.Category == "" {
		form.Category = form.Categories.Label(pet.CategoryID)
	}
	p := petEditPage{Pet: pet}
	if p.Ordered, err = v.isOrdered(pet); err != nil {
		return err
	}
	if p.Gallery, err = v.readGallery(pet, gallery{}); err != nil {
		return err
	}
	for _, s := range animalstore.PetStatuses {
		if changed := pet; changed.SetStatus(s, p.Ordered) == nil {
			form.Statuses = append(form.Statuses, s)
		}
	}
	p.frame, p.Form = v.frame("Change pet "+strconv.FormatInt(pet.ID, 10)), form
	return v.render(form.Problem.status(), "pet-edit", p)
}

// isOrdered reports whether a pet has an open order. Only a pending pet can have one.
func (v *visit) isOrdered(pet animalstore.Pet) (bool, error) {
	if pet.Status != animalstore.PetPending || !v.may(ordersRead) {
		return false, nil
	}
	q := animalstore.OrderQuery{PetID: pet.ID, Statuses: openStatuses}
	open, _, err := readRows(v, matching(v.api.ListOrders, q), client.PageSize(1))
	return len(open) > 0, err
}

// changePet serves POST /console/pets/{id}.
func (v *visit) changePet() error {
	form := v.sentPet()
	status := animalstore.PetStatus(form.Status)
	patch := animalstore.PetPatch{Name: &form.Name, Status: &status}
	var category int64
	refused := patch.Validate()
	if refused == nil { // before a category is added for it
		category, refused = v.category(&form)
		patch.CategoryID = &category
	}
	if refused == nil {
		_, refused = v.api.UpdatePet(v.r.Context(), v.id, patch, v.ifMatch())
	}
	return v.finish(refused, v.r.URL.Path, "saved", func(wrong formError) error {
		if !v.may(petsRead) {
			return refused
		}
		pet, etag, err := v.readPet(v.id)
		if err == nil && form.Categories == nil {
			form.Categories, err = v.readCategories()
		}
		if err == nil {
			_, err = v.lookUp(form.Categories, pet.CategoryID)
		}
		if err != nil {
			return err
		}
		mine, theirs := form.Categories.Label(category), form.Categories.Label(pet.CategoryID)
		if !form.refuse(wrong, etag, conflict{"Name", form.Name, pet.Name}, conflict{"Category", mine, theirs},
			conflict{"Status", form.Status, string(pet.Status)}) {
			return v.goTo(v.r.URL.Path, "unchanged") // the same form again, or someone made the same change
		}
		return v.showPetForm(pet, form)
	})
}

// removePet serves POST /console/pets/{id}/remove.
func (v *visit) removePet() error {
	err := v.api.DeletePet(v.r.Context(), v.id, v.ifMatch())
	if err != nil && codeOf(err) != animalstore.PetNotFound { // the second time
		return err
	}
	return v.goTo("/console/pets", "removed")
}
