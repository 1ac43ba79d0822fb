package console

import (
	"net/http"
	"slices"
	"strconv"
	"strings"

	"animalstore"
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
	PerPage    int
	Number     int64 // the id that was looked for, which no pet has; 0 if none was
}

// petRow is a pet in a table.
type petRow struct {
	animalstore.Pet
	Category string // its name
	Face     face
	Mark     string // the value of its checkbox
}

// listPets serves GET /console/pets. A number in the box that finds pets leads to the pet
// with that id, or else to those with a name like that.
func (v *visit) listPets() error {
	query := v.r.URL.Query()
	text, err := findText(v.r)
	number, notNumber := parseInteger(text)
	if notNumber != nil {
		number = 0
	}
	if err == nil && number != 0 && query.Get("in") != "names" {
		_, err := v.api.FindPet(v.r.Context(), number)
		switch {
		case err == nil:
			return v.goTo(petPath(number), "")
		case codeOf(err) != animalstore.PetNotFound:
			return err
		}
		query.Set("in", "names")
		return v.goTo("/console/pets?"+query.Encode(), "")
	}
	p := v.newPetsPage()
	p.Tabs, p.Number = statusTabs(v.r.URL, p.Status, "all", animalstore.PetStatuses), number
	if p.Categories, err = v.readCategories(); err != nil {
		return err
	}
	err = v.findPets(&p)
	wrong, err := filterProblem(err)
	if err != nil {
		return err
	}
	if p.Pets, err = v.petRows(p.Rows, p.Categories); err != nil {
		return err
	}
	p.frame, p.Problem = v.frame("Pets"), wrong
	return v.render(wrong.status(), "pets", p)
}

// newPetsPage returns a page with the filters of the request.
func (v *visit) newPetsPage() petsPage {
	query := v.r.URL.Query()
	p := petsPage{Status: query.Get("status"), Category: query.Get("category"), PerPage: pageSize}
	if n, err := strconv.Atoi(query.Get("rows")); err == nil && slices.Contains(p.PageSizes(), n) {
		p.PerPage = n
	}
	return p
}

// PageSizes are how many rows a page may have.
func (p petsPage) PageSizes() []int { return []int{pageSize, 50, 100} }

// petQuery is the query for the pets that match the filters.
func (v *visit) petQuery(p *petsPage) (q animalstore.PetQuery, err error) {
	q = animalstore.PetQuery{Status: animalstore.PetStatus(p.Status)}
	if q.Name, err = findText(v.r); err != nil || p.Category == "" {
		return q, err
	}
	id, err := v.chooseCategory(p.Category, p.Categories)
	if err == nil {
		q.CategoryID, p.Category = &id, p.Categories.Label(id)
	}
	return q, err
}

// findPets reads a page of the pets that match the filters.
func (v *visit) findPets(p *petsPage) error {
	q, err := v.petQuery(p)
	if err != nil {
		return err
	}
	p.page, err = readPage(v, matching(v.api.ListPets, q), p.PerPage)
	return err
}

// petRows adds the names of their categories and their faces to pets, with one call.
// Categories that aren't known are shown by their id.
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
	for i, pet := range pets {
		mark := markOf(pet.ID, v.c.Server.PetETag(pet), pet.Name)
		rows[i] = petRow{pet, c.Name(pet.CategoryID), newFace(pet.Name, photos[pet.ID]), mark}
	}
	return rows, nil
}

// petPath is the page of a pet.
func petPath(id int64) string { return "/console/pets/" + strconv.FormatInt(id, 10) }

// petForm is what the form of a pet shows.
type petForm struct {
	Name, Category, Status string
	Categories             *categories // nil: the key may not read them
	NewCategory            string      // offered to be added
	Statuses               []animalstore.PetStatus
	formState
}

// category returns the category in the form. A name that no category has is added if that
// was ticked, and else offered.
func (v *visit) category(form *petForm) (id int64, err error) {
	if v.may(petsRead) {
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
	Form    petForm
	Gallery gallery // of a pet without photos
}

// newPet serves GET /console/pets/new.
func (v *visit) newPet() error {
	form := petForm{Category: v.r.URL.Query().Get("category"), Status: string(animalstore.PetAvailable)}
	form.Once = newOnce()
	return v.showNewPet(form)
}

func (v *visit) showNewPet(form petForm) error {
	form.Statuses = animalstore.PetStatuses
	if !v.may(petsRead) {
		if err := v.chargeAddress(); err != nil { // no call charges this page to the key
			return err
		}
	} else if form.Categories == nil {
		var err error
		if form.Categories, err = v.readCategories(); err != nil {
			return err
		}
	}
	return v.render(form.Problem.status(), "pet-new", newPetPage{v.frame("Add a pet"), form, gallery{}})
}

// createPet serves POST /console/pets. A browser sends photos in the same form, the script
// afterwards.
func (v *visit) createPet() error {
	if !isUpload(v.r) {
		id, err := v.addPet()
		return v.showAdded(id, upload{v: v, pet: id}, err)
	}
	u := upload{v: v, addPet: v.addPet}
	err := u.receive()
	defer v.allowPage()()
	return v.showAdded(u.pet, u, err)
}

// showAdded leads to a new pet, or shows what is wrong with its form or photos.
func (v *visit) showAdded(id int64, u upload, err error) error {
	if wrong, ok := formProblem(err); ok && id == 0 {
		form := v.sentPet()
		form.Once, form.Problem = v.field("once"), wrong
		if wrong.Status == http.StatusUnprocessableEntity { // the Idempotency-Key has been used
			form.Once = newOnce()
		}
		if codeOf(err) == animalstore.CategoryNotFound {
			form.NewCategory = strings.TrimSpace(form.Category)
		}
		return v.showNewPet(form)
	}
	switch {
	case err != nil:
		return err
	case v.wantsJSON():
		v.say("added")
		v.writeJSON(v.uploadResult(id))
		return nil
	case len(u.sent.Refused) > 0 && v.may(petsRead):
		return v.showPetWith(u.status(), id, u.sent)
	}
	return v.goTo(v.petPath(id), "added")
}

// addPet adds the pet in a form.
func (v *visit) addPet() (id int64, err error) {
	form := v.sentPet()
	in := animalstore.NewPet{Name: form.Name, Status: animalstore.PetStatus(form.Status)}
	if err := in.Validate(); err != nil { // before a category is added for it
		return 0, err
	}
	if in.CategoryID, err = v.category(&form); err != nil {
		return 0, err
	}
	pet, err := v.api.CreatePet(v.r.Context(), in, v.idempotencyKey())
	return pet.ID, err
}

func (v *visit) sentPet() petForm {
	return petForm{
		Name: v.field("name"), Category: v.field("category"), Status: v.field("status"),
		formState: v.sentState(),
	}
}
