package console

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"animalstore"
	"animalstore/client"
)

const (
	// listedCategories is how many categories one call lists.
	listedCategories = 100
	// categoryCalls is how often a name is looked for: in a thousand categories.
	categoryCalls = 10
	// labelLength is how many code points of a name a label shows.
	labelLength = 60
)

// categories are those to choose from. Forms and filters name a category by its label, such
// as "Dogs (3)", because several may have the same name, or none. The name alone will do
// if only one has it.
type categories struct {
	known []animalstore.Category
	next  string // where the others begin; "" if all are known
}

// readCategories returns the first categories by id: all, in most stores.
func (v *visit) readCategories() (*categories, error) {
	c := &categories{}
	return c, v.readMoreCategories(c)
}

func (v *visit) readMoreCategories(c *categories) error {
	more, next, err := readRows(v, v.api.ListCategories, client.FromCursor(c.next))
	for _, category := range more {
		if c.index(category.ID) < 0 {
			c.known = append(c.known, category)
		}
	}
	c.next = next
	return err
}

// lookUp adds a category unless it is known already.
func (v *visit) lookUp(c *categories, id int64) (found bool, err error) {
	if c.index(id) >= 0 || c.next == "" {
		return c.index(id) >= 0, nil
	}
	category, err := v.api.GetCategory(v.r.Context(), id)
	if codeOf(err) == animalstore.CategoryNotFound {
		return false, nil
	}
	if err == nil {
		c.known = append(c.known, category)
	}
	return err == nil, err
}

func (c *categories) index(id int64) int {
	return slices.IndexFunc(c.known, func(k animalstore.Category) bool { return k.ID == id })
}

// Name is the name of a category, "" if it has none or isn't known.
func (c *categories) Name(id int64) string {
	if i := c.index(id); i >= 0 {
		return c.known[i].Name
	}
	return ""
}

// Label is what a form shows for a category.
func (c *categories) Label(id int64) string {
	return categoryLabel(animalstore.Category{ID: id, Name: c.Name(id)})
}

func categoryLabel(c animalstore.Category) string {
	name := []rune(c.Name)
	switch {
	case len(name) == 0:
		name = []rune("no name")
	case len(name) > labelLength:
		name = append(name[:labelLength-1:labelLength-1], '…')
	}
	return string(name) + " (" + strconv.FormatInt(c.ID, 10) + ")"
}

// Labels are the labels of all known categories, by name.
func (c *categories) Labels() (labels []string) {
	for _, k := range c.known {
		labels = append(labels, categoryLabel(k))
	}
	slices.SortFunc(labels, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
	return labels
}

// More reports whether Labels lacks some categories.
func (c *categories) More() bool { return c.next != "" }

// named returns the ids of the known categories with this name.
func (c *categories) named(name string) (ids []int64) {
	for _, k := range c.known {
		if strings.EqualFold(strings.TrimSpace(k.Name), name) {
			ids = append(ids, k.ID)
		}
	}
	return ids
}

// freeID is the lowest positive id that no known category has.
func (c *categories) freeID() int64 {
	id := int64(1)
	for c.index(id) >= 0 {
		id++
	}
	return id
}

var labelID = regexp.MustCompile(`\((-?[0-9]+)\)$`)

// chooseCategory returns the category that was chosen by its label, its name or its id.
// Without categories, which needs the permission to read, only the id is understood.
func (v *visit) chooseCategory(text string, c *categories) (int64, error) {
	text = strings.TrimSpace(text)
	number := text
	if label := labelID.FindStringSubmatch(text); label != nil {
		number = label[1]
	}
	id, err := parseInteger(number)
	isNumber := err == nil
	switch {
	case c == nil && !isNumber:
		return 0, badField("category", "enter the number of the category: your key may not read names")
	case c == nil:
		return id, nil
	case text == "":
		return 0, badField("category", "choose a category")
	}
	if ids := c.named(text); len(ids) == 1 && (!isNumber || c.Label(id) != text) {
		return ids[0], nil
	}
	if isNumber {
		if found, err := v.lookUp(c, id); found || err != nil {
			return id, err
		}
	}
	return v.findCategory(text, c)
}

// findCategory returns the category with this name. The error has code category_not_found
// if there is none, so that it can be added.
func (v *visit) findCategory(name string, c *categories) (int64, error) {
	if err := v.readUntilNamed(c, name); err != nil {
		return 0, err
	}
	switch ids := c.named(name); {
	case len(ids) == 1:
		return ids[0], nil
	case len(ids) > 1:
		return 0, badField("category", "several categories are called “"+name+"”: choose one from the list")
	case c.More():
		return 0, badField("category", "no category is called “"+name+"” among the first "+number(categoryCalls*listedCategories)+": find it under Categories, then type its name with its id, such as Dogs (3)")
	}
	return 0, &fieldError{"category", &client.Error{Status: http.StatusBadRequest, Err: animalstore.Errorf(animalstore.CategoryNotFound, "no category is called “%s”", name)}}
}

// readUntilNamed reads more categories until one has this name, all are known, or too many
// would be.
func (v *visit) readUntilNamed(c *categories, name string) error {
	for calls := 1; c.More() && calls < categoryCalls && c.named(name) == nil; calls++ {
		if err := v.readMoreCategories(c); err != nil {
			return err
		}
	}
	return nil
}

// addNamedCategory adds a category with an id that is free. All others must be known.
func (v *visit) addNamedCategory(name string, c *categories) (int64, error) {
	id := c.freeID()
	return id, v.addNewCategory(animalstore.Category{ID: id, Name: name}, "")
}

// addNewCategory adds a category unless another one has its id, which is an error about this
// field. Sent twice, it adds one.
func (v *visit) addNewCategory(category animalstore.Category, field string) error {
	_, err := v.api.PutCategory(v.r.Context(), category, client.IfNoneMatch("*"))
	if !isStale(err) {
		return err
	}
	if existing, err := v.api.GetCategory(v.r.Context(), category.ID); err == nil && existing.Name == category.Name {
		return nil
	}
	return badField(field, fmt.Sprintf("there is a category with the id %d already", category.ID))
}
