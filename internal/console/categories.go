package console

import (
	"iter"
	"net/http"
	"strconv"
	"strings"

	"animalstore"
	"animalstore/client"
)

type categoriesPage struct {
	frame
	page[animalstore.Category]
	ID, Name string // of the form
	Problem  formError
}

// listCategories serves GET /console/categories.
func (v *visit) listCategories() error {
	return v.showCategories(http.StatusOK, "", "", formError{})
}

func (v *visit) showCategories(status int, id, name string, wrong formError) error {
	if !v.may(petsRead) {
		v.show(problem{Status: status, Heading: "That isn’t possible", Message: wrong.Message})
		return nil
	}
	categories, err := readPage(v, func(options ...client.CallOption) iter.Seq2[animalstore.Category, error] {
		return v.api.ListCategories(v.r.Context(), client.PageQuery{PageSize: pageSize}, options...)
	})
	if err != nil {
		return err
	}
	return v.render(status, "categories", categoriesPage{v.c.frame(v, "Categories"), categories, id, name, wrong})
}

// addCategory serves POST /console/categories.
func (v *visit) addCategory() error {
	name := v.field("name")
	if strings.TrimSpace(v.field("id")) == "" {
		return v.addCategoryWithoutID(name)
	}
	id, err := v.integer("id", "the id")
	if err == nil {
		_, err = v.api.PutCategory(v.r.Context(), animalstore.Category{ID: id, Name: name}, client.IfNoneMatch("*"))
	}
	if isStale(err) { // it exists
		existing, readErr := v.api.GetCategory(v.r.Context(), id)
		if readErr == nil && existing.Name == name { // the same form again
			return v.goTo("/console/categories", "unchanged")
		}
		return v.showCategories(http.StatusPreconditionFailed, v.field("id"), name, formError{"id", "There is a category with this id already. Open it in the list to rename it."})
	}
	if message, status, ok := formProblem(err); ok {
		return v.showCategories(status, v.field("id"), name, message)
	}
	if err != nil {
		return err
	}
	return v.goTo("/console/categories", "added")
}

// addCategoryWithoutID adds a category unless there is one with this name.
func (v *visit) addCategoryWithoutID(name string) error {
	err := animalstore.ValidateName(name)
	all := &categories{}
	if err == nil && v.may(petsRead) {
		if all, err = v.readCategories(); err == nil {
			err = v.readUntilNamed(all, strings.TrimSpace(name))
		}
	}
	switch {
	case err != nil:
	case len(all.named(strings.TrimSpace(name))) > 0:
		return v.goTo("/console/categories", "unchanged")
	case all.More() || !v.may(petsRead): // not all are known
		err = badField("id", "enter an id that no category has yet: there are too many categories to choose one for you")
	default:
		_, err = v.addNamedCategory(name, all)
	}
	if message, status, ok := formProblem(err); ok {
		return v.showCategories(status, "", name, message)
	}
	if err != nil {
		return err
	}
	return v.goTo("/console/categories", "added")
}

type categoryPage struct {
	frame
	Category  animalstore.Category
	Name      string // in the form
	ETag      string
	Problem   formError
	Conflicts []conflict
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
	p := categoryPage{Category: category, Name: category.Name, ETag: etag}
	if p.history, err = v.readHistory(client.EventsOptions{Subject: animalstore.EventSubject("category", category.ID)}); err != nil {
		return err
	}
	return v.renderCategory(http.StatusOK, p)
}

func (v *visit) renderCategory(status int, p categoryPage) error {
	p.frame = v.c.frame(v, "Category "+strconv.FormatInt(p.Category.ID, 10))
	return v.render(status, "category", p)
}

// renameCategory serves POST /console/categories/{id}.
func (v *visit) renameCategory() error {
	id, err := v.id()
	if err != nil {
		return err
	}
	name := v.field("name")
	_, err = v.api.PutCategory(v.r.Context(), animalstore.Category{ID: id, Name: name}, v.ifMatch())
	if err == nil {
		return v.goTo(v.r.URL.Path, "saved")
	}
	message, status, fixable := formProblem(err)
	if !fixable && !isStale(err) || !v.may(petsRead) {
		return err
	}
	category, etag, err := readTagged(v, v.api.GetCategory)
	if err != nil {
		return err
	}
	p := categoryPage{Category: category, Name: name, ETag: etag, Problem: message}
	if fixable {
		return v.renderCategory(status, p)
	}
	if p.Conflicts = conflicts(conflict{"Name", name, category.Name}); p.Conflicts == nil {
		return v.goTo(v.r.URL.Path, "unchanged")
	}
	return v.renderCategory(http.StatusPreconditionFailed, p)
}
