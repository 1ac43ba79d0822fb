package console

import (
	"strconv"
	"strings"

	"animalstore"
)

type categoriesPage struct {
	frame
	page[animalstore.Category]
	ID, Name string // of the form
	Problem  formError
}

// listCategories serves GET /console/categories.
func (v *visit) listCategories() error { return v.showCategories(formError{}) }

func (v *visit) showCategories(wrong formError) error {
	if !v.may(petsRead) {
		return problem{Status: wrong.Status, Heading: "That isn’t possible", Message: wrong.Message}
	}
	categories, err := readPage(v, v.api.ListCategories, pageSize)
	if err != nil {
		return err
	}
	p := categoriesPage{v.frame("Categories"), categories, v.field("id"), v.field("name"), wrong}
	return v.render(wrong.status(), "categories", p)
}

// addCategory serves POST /console/categories.
func (v *visit) addCategory() error {
	const path = "/console/categories"
	name := v.field("name")
	if strings.TrimSpace(v.field("id")) == "" {
		done, err := v.addCategoryWithoutID(name)
		return v.finish(err, path, done, v.showCategories)
	}
	id, err := v.integer("id", "the id")
	if err == nil {
		err = v.addNewCategory(animalstore.Category{ID: id, Name: name}, "id")
	}
	return v.finish(err, path, "added", v.showCategories)
}

// addCategoryWithoutID adds a category unless there is one with this name.
func (v *visit) addCategoryWithoutID(name string) (done string, err error) {
	if err := animalstore.ValidateName(name); err != nil {
		return "", err
	}
	all := &categories{}
	if v.may(petsRead) {
		if all, err = v.readCategories(); err == nil {
			err = v.readUntilNamed(all, strings.TrimSpace(name))
		}
	}
	switch {
	case err != nil:
		return "", err
	case len(all.named(strings.TrimSpace(name))) > 0:
		return "unchanged", nil
	case all.More() || !v.may(petsRead): // not all are known
		return "", badField("id", "enter an id that no category has yet: there are too many categories to choose one for you")
	}
	_, err = v.addNamedCategory(name, all)
	return "added", err
}

type categoryPage struct {
	frame
	formState
	Category animalstore.Category
	Name     string // in the form
	history
}

// Label is what forms show for the category.
func (p categoryPage) Label() string { return categoryLabel(p.Category) }

// showCategory serves GET /console/categories/{id}.
func (v *visit) showCategory() error {
	category, etag, err := readTagged(v, v.api.GetCategory)
	if err != nil {
		return err
	}
	p := categoryPage{Category: category, Name: category.Name, formState: formState{ETag: etag}}
	if p.history, err = v.readHistory("category", category.ID); err != nil {
		return err
	}
	return v.renderCategory(p)
}

func (v *visit) renderCategory(p categoryPage) error {
	p.frame = v.frame("Category " + strconv.FormatInt(v.id, 10))
	return v.render(p.Problem.status(), "category", p)
}

// renameCategory serves POST /console/categories/{id}.
func (v *visit) renameCategory() error {
	name := v.field("name")
	_, refused := v.api.PutCategory(v.r.Context(), animalstore.Category{ID: v.id, Name: name}, v.ifMatch())
	return v.finish(refused, v.r.URL.Path, "saved", func(wrong formError) error {
		if !v.may(petsRead) {
			return refused
		}
		category, etag, err := readTagged(v, v.api.GetCategory)
		if err != nil {
			return err
		}
		p := categoryPage{Category: category, Name: name, formState: v.sentState()}
		if !p.refuse(wrong, etag, conflict{"Name", name, category.Name}) {
			return v.goTo(v.r.URL.Path, "unchanged")
		}
		return v.renderCategory(p)
	})
}
