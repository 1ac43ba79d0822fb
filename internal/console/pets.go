package console

import (
	"cmp"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"animalstore"
	"animalstore/client"
)

type petsPage struct {
	frame
	page[animalstore.Pet]
	Statuses   []animalstore.PetStatus
	Status     string
	Category   string
	ID         string
	Categories map[int64]string
	Problem    formError // of the filters
}

// listPets serves GET /console/pets.
func (v *visit) listPets() error {
	query := v.r.URL.Query()
	names, err := v.categoryNames()
	if err != nil {
		return err
	}
	q, err := petQuery(query, names)
	var pets page[animalstore.Pet]
	if err == nil {
		pets, err = readPage(v, pageSize, func(options ...client.CallOption) iter.Seq2[animalstore.Pet, error] {
			return v.api.ListPets(v.r.Context(), q, options...)
		})
	}
	wrong, status, err := filterProblem(err)
	if err != nil {
		return err
	}
	return v.render(status, "pets", petsPage{v.c.frame(v, "Pets"), pets, animalstore.PetStatuses, query.Get("status"), query.Get("category"), query.Get("id"), names, wrong})
}

func petQuery(query url.Values, names map[int64]string) (client.PetQuery, error) {
	q := client.PetQuery{Status: animalstore.PetStatus(query.Get("status")), PageSize: pageSize}
	if text := query.Get("category"); text != "" {
		id, err := findCategory(text, names)
		if err != nil {
			return q, err
		}
		q.CategoryID = &id
	}
	id, err := idFilter(query, "id")
	if id > 0 {
		q.IDs = []int64{id}
	}
	return q, err
}

// findCategory returns the id of a category that is given by its id or by its name.
func findCategory(text string, names map[int64]string) (int64, error) {
	if id, err := parseInteger(text); err == nil {
		return id, nil
	}
	for id, name := range names {
		if strings.EqualFold(name, strings.TrimSpace(text)) {
			return id, nil
		}
	}
	return 0, badField("category", "there is no such category: enter its id or its name")
}

// categoryNames returns the names of the first hundred categories by id: one call, and
// enough for most stores. Others are shown by their id.
func (v *visit) categoryNames() (map[int64]string, error) {
	names := map[int64]string{}
	for category, err := range v.api.ListCategories(v.r.Context(), client.PageQuery{PageSize: 100}) {
		if err != nil {
			return nil, err
		}
		if names[category.ID] = category.Name; len(names) == 100 {
			break
		}
	}
	return names, nil
}

// petForm is what the form of a pet shows.
type petForm struct {
	Name, CategoryID, Status string
	Problem                  formError
	Once                     string // of a new pet
	ETag                     string // of a change: the version it was made from
	Statuses                 []animalstore.PetStatus
	Conflicts                []conflict
}

type newPetPage struct {
	frame
	Form       petForm
	Categories map[int64]string
}

// newPet serves GET /console/pets/new.
func (v *visit) newPet() error {
	form := petForm{Status: string(animalstore.PetAvailable)}
	if notice, ok := v.takeKept("/console/pets"); ok {
		form = v.sentPet()
		form.Problem, form.Once = notice, v.field("once")
	}
	form.Once = cmp.Or(form.Once, newOnce())
	return v.showNewPet(http.StatusOK, form)
}

func (v *visit) showNewPet(status int, form petForm) error {
	form.Statuses = animalstore.PetStatuses
	var names map[int64]string
	if v.may(read) {
		var err error
		if names, err = v.categoryNames(); err != nil {
			return err
		}
	} else if !v.c.chargeAddress(v.w, v.r) { // no call charges this page to the key
		return nil
	}
	return v.render(status, "pet-new", newPetPage{v.c.frame(v, "Add a pet"), form, names})
}

// createPet serves POST /console/pets.
func (v *visit) createPet() error {
	form := v.sentPet()
	form.Once = v.field("once")
	var pet animalstore.Pet
	category, err := v.integer("categoryId", "the category")
	if err == nil {
		pet, err = v.api.CreatePet(v.r.Context(), animalstore.NewPet{Name: form.Name, CategoryID: category, Status: animalstore.PetStatus(form.Status)}, v.idempotencyKey())
	}
	if message, status, ok := formProblem(err); ok {
		if status == http.StatusUnprocessableEntity { // the Idempotency-Key has been used
			form.Once = newOnce()
		}
		form.Problem = message
		return v.showNewPet(status, form)
	}
	if err != nil {
		return err
	}
	if !v.may(read) {
		return v.goTo("/console/pets/new", "added")
	}
	return v.goTo("/console/pets/"+strconv.FormatInt(pet.ID, 10), "added")
}

func (v *visit) sentPet() petForm {
	return petForm{Name: v.field("name"), CategoryID: v.field("categoryId"), Status: v.field("status"), ETag: v.field("etag")}
}

type petPage struct {
	frame
	Pet      animalstore.Pet
	Category string
	Orders   page[animalstore.Order]
	Form     petForm
	Once     string // of an order
	Ordered  bool
	feed
}

// showPet serves GET /console/pets/{id}.
func (v *visit) showPet() error {
	pet, etag, err := v.readPet()
	if err != nil {
		return err
	}
	past, err := v.historyOf("pet", pet.ID, true)
	if err != nil {
		return err
	}
	form := petForm{Name: pet.Name, CategoryID: strconv.FormatInt(pet.CategoryID, 10), Status: string(pet.Status), ETag: etag}
	if notice, ok := v.takeKept(v.r.URL.Path); ok {
		form = v.sentPet()
		form.Problem = notice
	}
	return v.showThisPet(http.StatusOK, pet, form, past)
}

// readPet returns the pet in the path and the ETag that guards changes of it. Only the
// deprecated operation returns that ETag: the list, which replaces it, has one for the
// whole page. Once the operation is removed, changes are made whatever else was changed.
func (v *visit) readPet() (pet animalstore.Pet, etag string, err error) {
	pet, etag, err = readTagged(v, v.api.GetPet)
	if codeOf(err) != animalstore.EndpointRemoved {
		return pet, etag, err
	}
	id, err := v.id()
	if err != nil {
		return pet, "", err
	}
	pet, err = v.api.FindPet(v.r.Context(), id)
	if codeOf(err) == animalstore.PetNotFound { // made by the client, so it has no status
		err = &client.Error{Status: http.StatusNotFound, Err: animalstore.Errorf(animalstore.PetNotFound, "there is no such pet")}
	}
	return pet, "*", err
}

func (v *visit) showThisPet(status int, pet animalstore.Pet, form petForm, past feed) error {
	orders, err := readPage(v, 20, func(options ...client.CallOption) iter.Seq2[animalstore.Order, error] {
		return v.api.ListOrders(v.r.Context(), client.OrderQuery{PetID: pet.ID, PageSize: 20}, options...)
	})
	if err != nil {
		return err
	}
	category, err := v.api.GetCategory(v.r.Context(), pet.CategoryID)
	if err != nil && codeOf(err) != animalstore.CategoryNotFound {
		return err
	}
	// Only the newest order can be open: the others ended before it was placed.
	ordered := len(orders.Rows) > 0 && orders.Rows[0].Status.Open()
	for _, s := range animalstore.PetStatuses {
		if changed := pet; changed.SetStatus(s, ordered) == nil {
			form.Statuses = append(form.Statuses, s)
		}
	}
	return v.render(status, "pet", petPage{v.c.frame(v, "Pet "+strconv.FormatInt(pet.ID, 10)), pet, category.Name, orders, form, newOnce(), ordered, past})
}

// changePet serves POST /console/pets/{id}.
func (v *visit) changePet() error {
	id, err := v.id()
	if err != nil {
		return err
	}
	form := v.sentPet()
	category, err := v.integer("categoryId", "the category")
	if err == nil {
		status := animalstore.PetStatus(form.Status)
		_, err = v.api.UpdatePet(v.r.Context(), id, animalstore.PetPatch{Name: &form.Name, CategoryID: &category, Status: &status}, v.ifMatch())
	}
	if err == nil {
		return v.goTo(v.r.URL.Path, "saved")
	}
	message, status, fixable := formProblem(err)
	if !fixable && !isStale(err) {
		return err
	}
	pet, etag, err := v.readPet()
	if err != nil {
		return err
	}
	theirs := strconv.FormatInt(pet.CategoryID, 10)
	if fixable {
		form.Problem = message
		return v.showThisPet(status, pet, form, feed{})
	}
	form.Conflicts = conflicts(conflict{"Name", form.Name, pet.Name}, conflict{"Category", form.CategoryID, theirs}, conflict{"Status", form.Status, string(pet.Status)})
	if form.Conflicts == nil { // the same form again, or somebody made the same change
		return v.goTo(v.r.URL.Path, "unchanged")
	}
	form.ETag = etag
	return v.showThisPet(http.StatusPreconditionFailed, pet, form, feed{})
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
