package console

import (
	"iter"
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
func (v *visit) showPet() error {
	id, err := v.id()
	if err != nil {
		return err
	}
	return v.showPetWith(http.StatusOK, id, gallery{})
}

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
	if v.may(eventsRead) {
		if p.history, err = v.readHistory(client.EventsOptions{PetID: id}); err != nil {
			return err
		}
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
	p.frame = v.c.frame(v, "Pet "+strconv.FormatInt(id, 10))
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

// readPet returns a pet and the ETag that guards changes of it. Only the deprecated
// operation returns that ETag: the list, which replaces it, has one for the whole page. Once
// the operation is removed, changes are unconditional.
func (v *visit) readPet(id int64) (pet animalstore.Pet, etag string, err error) {
	var meta client.Meta
	pet, err = v.api.GetPet(v.r.Context(), id, client.ReadMeta(&meta))
	if codeOf(err) != animalstore.EndpointRemoved {
		return pet, meta.ETag, err
	}
	pet, err = v.api.FindPet(v.r.Context(), id)
	if codeOf(err) == animalstore.PetNotFound { // made by the client, so it has no status
		err = &client.Error{Status: http.StatusNotFound, Err: animalstore.Errorf(animalstore.PetNotFound, "there is no such pet")}
	}
	return pet, "*", err
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
	id, err := v.id()
	if err != nil {
		return err
	}
	pet, etag, err := v.readPet(id)
	if err != nil {
		return err
	}
	form := petForm{Name: pet.Name, Status: string(pet.Status), ETag: etag}
	return v.showPetForm(http.StatusOK, pet, form)
}

// showPetForm shows the form to change a pet. Without a category, it has that of the pet.
func (v *visit) showPetForm(status int, pet animalstore.Pet, form petForm) (err error) {
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
	p.frame, p.Form = v.c.frame(v, "Change pet "+strconv.FormatInt(pet.ID, 10)), form
	return v.render(status, "pet-edit", p)
}

// isOrdered reports whether a pet has an open order. Only a pending pet can have one.
func (v *visit) isOrdered(pet animalstore.Pet) (bool, error) {
	if pet.Status != animalstore.PetPending || !v.may(ordersRead) {
		return false, nil
	}
	open, _, err := readRows("", func(options ...client.CallOption) iter.Seq2[animalstore.Order, error] {
		return v.api.ListOrders(v.r.Context(), client.OrderQuery{PetID: pet.ID, Statuses: openStatuses, PageSize: 1}, options...)
	})
	return len(open) > 0, err
}

// changePet serves POST /console/pets/{id}.
func (v *visit) changePet() error {
	id, err := v.id()
	if err != nil {
		return err
	}
	form := v.sentPet()
	status := animalstore.PetStatus(form.Status)
	patch := animalstore.PetPatch{Name: &form.Name, Status: &status}
	var category int64
	if err = patch.Validate(); err == nil { // before a category is added for it
		category, err = v.category(&form)
		patch.CategoryID = &category
	}
	if err == nil {
		_, err = v.api.UpdatePet(v.r.Context(), id, patch, v.ifMatch())
	}
	if err == nil {
		return v.goTo(v.r.URL.Path, "saved")
	}
	message, code, fixable := formProblem(err)
	if !fixable && !isStale(err) || !v.may(petsRead) {
		return err
	}
	pet, etag, err := v.readPet(id)
	if err != nil {
		return err
	}
	if fixable {
		form.Problem = message
		return v.showPetForm(code, pet, form)
	}
	if _, err := v.lookUp(form.Categories, pet.CategoryID); err != nil {
		return err
	}
	mine, theirs := form.Categories.Label(category), form.Categories.Label(pet.CategoryID)
	form.Conflicts = conflicts(conflict{"Name", form.Name, pet.Name}, conflict{"Category", mine, theirs}, conflict{"Status", form.Status, string(pet.Status)})
	if form.Conflicts == nil { // the same form again, or someone made the same change
		return v.goTo(v.r.URL.Path, "unchanged")
	}
	form.ETag = etag
	return v.showPetForm(http.StatusPreconditionFailed, pet, form)
}

// removePet serves POST /console/pets/{id}/remove.
func (v *visit) removePet() error {
	id, err := v.id()
	if err != nil {
		return err
	}
	switch err := v.api.DeletePet(v.r.Context(), id, v.ifMatch()); {
	case err == nil, codeOf(err) == animalstore.PetNotFound: // the second time
		return v.goTo("/console/pets", "removed")
	default:
		return err
	}
}
