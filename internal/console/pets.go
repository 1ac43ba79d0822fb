package console

import (
	"iter"
	"net/http"
	"strconv"
	"strings"

	"animalstore"
	"animalstore/client"
)

type petsPage struct {
	frame
	page[animalstore.Pet]
	Pets       []petRow
	Tabs       []tab
	Status     string
	Category   string
	Categories *categories
	Problem    formError // of the filters
}

// petRow is a pet in a table.
type petRow struct {
	animalstore.Pet
	Category string // its name
	Face     face
}

// listPets serves GET /console/pets. A number in the box that finds pets leads to the pet
// with that id, if there is one.
func (v *visit) listPets() error {
	query := v.r.URL.Query()
	if query.Get("cursor") == "" {
		pet, found, err := v.petWithNumber(query.Get("find"))
		if err != nil {
			return err
		}
		if found {
			return v.goTo("/console/pets/"+strconv.FormatInt(pet.ID, 10), "")
		}
	}
	p := petsPage{Status: query.Get("status"), Category: query.Get("category"), Tabs: statusTabs(v.r.URL, animalstore.PetStatuses)}
	var err error
	if p.Categories, err = v.readCategories(); err != nil {
		return err
	}
	err = v.findPets(&p)
	wrong, status, err := filterProblem(err)
	if err != nil {
		return err
	}
	if p.Pets, err = v.petRows(p.Rows, p.Categories); err != nil {
		return err
	}
	p.frame, p.Problem = v.c.frame(v, "Pets"), wrong
	return v.render(status, "pets", p)
}

// findPets reads a page of the pets that match the filters.
func (v *visit) findPets(p *petsPage) (err error) {
	q := client.PetQuery{Status: animalstore.PetStatus(p.Status), PageSize: pageSize}
	if q.Name, err = findText(v.r); err != nil {
		return err
	}
	if p.Category != "" {
		id, err := v.chooseCategory(p.Category, p.Categories)
		if err != nil {
			return err
		}
		q.CategoryID, p.Category = &id, p.Categories.Label(id)
	}
	p.page, err = readPage(v, func(options ...client.CallOption) iter.Seq2[animalstore.Pet, error] {
		return v.api.ListPets(v.r.Context(), q, options...)
	})
	return err
}

// petRows adds the names of their categories and their faces to pets. In a store with very
// many categories, only a few more are looked up: the others are shown by their id.
func (v *visit) petRows(pets []animalstore.Pet, c *categories) ([]petRow, error) {
	ids := make([]int64, len(pets))
	for i, pet := range pets {
		ids[i] = pet.ID
	}
	photos, err := v.firstPhotos(ids)
	if err != nil {
		return nil, err
	}
	rows := make([]petRow, len(pets))
	lookups := 0
	for i, pet := range pets {
		if c.index(pet.CategoryID) < 0 && lookups < categoryLookups {
			lookups++
			if _, err := v.lookUp(c, pet.CategoryID); err != nil {
				return nil, err
			}
		}
		rows[i] = petRow{pet, c.Name(pet.CategoryID), newFace(pet.Name, photos[pet.ID])}
	}
	return rows, nil
}

// petForm is what the form of a pet shows.
type petForm struct {
	Name, Category, Status string
	Categories             *categories // nil: the key may not read them
	NewCategory            string      // offered to be added
	Problem                formError
	Once                   string // of a new pet
	ETag                   string // of a change: the version it was made from
	Statuses               []animalstore.PetStatus
	Conflicts              []conflict
}

// category returns the category in the form. A name that no category has is added if that
// was ticked, and else offered.
func (v *visit) category(form *petForm) (id int64, err error) {
	if v.may(read) {
		if form.Categories, err = v.readCategories(); err != nil {
			return 0, err
		}
	}
	id, err = v.chooseCategory(form.Category, form.Categories)
	if codeOf(err) != animalstore.CategoryNotFound {
		return id, err
	}
	form.NewCategory = strings.TrimSpace(form.Category)
	if v.field("newCategory") == form.NewCategory {
		return v.addNamedCategory(form.NewCategory, form.Categories)
	}
	return id, err
}

type newPetPage struct {
	frame
	Form petForm
}

// newPet serves GET /console/pets/new.
func (v *visit) newPet() error {
	form := petForm{Category: v.r.URL.Query().Get("category"), Status: string(animalstore.PetAvailable), Once: newOnce()}
	return v.showNewPet(http.StatusOK, form)
}

func (v *visit) showNewPet(status int, form petForm) error {
	form.Statuses = animalstore.PetStatuses
	if !v.may(read) {
		if !v.c.chargeAddress(v.w, v.r) { // no call charges this page to the key
			return nil
		}
	} else if form.Categories == nil {
		var err error
		if form.Categories, err = v.readCategories(); err != nil {
			return err
		}
	}
	return v.render(status, "pet-new", newPetPage{v.c.frame(v, "Add a pet"), form})
}

// createPet serves POST /console/pets.
func (v *visit) createPet() error {
	form := v.sentPet()
	form.Once = v.field("once")
	in := animalstore.NewPet{Name: form.Name, Status: animalstore.PetStatus(form.Status)}
	var pet animalstore.Pet
	err := in.Validate() // before a category is added for it
	if err == nil {
		in.CategoryID, err = v.category(&form)
	}
	if err == nil {
		pet, err = v.api.CreatePet(v.r.Context(), in, v.idempotencyKey())
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
	return petForm{Name: v.field("name"), Category: v.field("category"), Status: v.field("status"), ETag: v.field("etag")}
}

type petPage struct {
	frame
	Pet     petRow
	Orders  page[animalstore.Order]
	Form    petForm
	Once    string // of an order
	Ordered bool
	Gallery gallery
	feed
}

// showPet serves GET /console/pets/{id}.
func (v *visit) showPet() error { return v.showPetWith(http.StatusOK, gallery{}) }

// showPetWith shows a pet, and which of the photos that were just sent were refused.
func (v *visit) showPetWith(status int, sent gallery) error {
	pet, etag, err := v.readPet()
	if err != nil {
		return err
	}
	past, err := v.historyOf("pet", pet.ID, true)
	if err != nil {
		return err
	}
	categories, err := v.readCategories()
	if err != nil {
		return err
	}
	if _, err := v.lookUp(categories, pet.CategoryID); err != nil {
		return err
	}
	form := petForm{Name: pet.Name, Category: categories.Label(pet.CategoryID), Status: string(pet.Status), Categories: categories, ETag: etag}
	return v.showThisPet(status, pet, form, past, sent)
}

// readPet returns the pet in the path and the ETag that guards changes of it. Only the
// deprecated operation returns that ETag: the list, which replaces it, has one for the
// whole page. Once the operation is removed, changes are unconditional.
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

func (v *visit) showThisPet(status int, pet animalstore.Pet, form petForm, past feed, photos gallery) error {
	orders, err := readPage(v, func(options ...client.CallOption) iter.Seq2[animalstore.Order, error] {
		return v.api.ListOrders(v.r.Context(), client.OrderQuery{PetID: pet.ID, PageSize: 20}, options...)
	})
	if err != nil {
		return err
	}
	if photos, err = v.readGallery(pet, photos); err != nil {
		return err
	}
	// Only the newest order can be open: the others ended before it was placed.
	ordered := len(orders.Rows) > 0 && orders.Rows[0].Status.Open()
	for _, s := range animalstore.PetStatuses {
		if changed := pet; changed.SetStatus(s, ordered) == nil {
			form.Statuses = append(form.Statuses, s)
		}
	}
	return v.render(status, "pet", petPage{
		v.c.frame(v, "Pet "+strconv.FormatInt(pet.ID, 10)), petRow{Pet: pet, Category: form.Categories.Name(pet.CategoryID)},
		orders, form, newOnce(), ordered, photos, past,
	})
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
	if !fixable && !isStale(err) {
		return err
	}
	pet, etag, err := v.readPet()
	if err != nil {
		return err
	}
	if form.Categories == nil {
		if form.Categories, err = v.readCategories(); err != nil {
			return err
		}
	}
	if _, err := v.lookUp(form.Categories, pet.CategoryID); err != nil {
		return err
	}
	if fixable {
		form.Problem = message
		return v.showThisPet(code, pet, form, feed{}, gallery{})
	}
	mine, theirs := form.Categories.Label(category), form.Categories.Label(pet.CategoryID)
	form.Conflicts = conflicts(conflict{"Name", form.Name, pet.Name}, conflict{"Category", mine, theirs}, conflict{"Status", form.Status, string(pet.Status)})
	if form.Conflicts == nil { // the same form again, or someone made the same change
		return v.goTo(v.r.URL.Path, "unchanged")
	}
	form.ETag = etag
	return v.showThisPet(http.StatusPreconditionFailed, pet, form, feed{}, gallery{})
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
