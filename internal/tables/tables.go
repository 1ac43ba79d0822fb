// Package tables says how pets, orders, categories, events, keys, their usage and
// webhooks are shown on a terminal: as the columns of a list, as fields, or in a
// sentence.
package tables

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"animalstore"
	"animalstore/internal/terminal"
)

// Pets are the columns of pets.
var Pets = []terminal.Column[animalstore.Pet]{
	{Title: "ID", Text: func(p animalstore.Pet) string { return decimal(p.ID) }},
	{Title: "NAME", Text: func(p animalstore.Pet) string { return p.Name }, Shrink: true},
	{Title: "CATEGORY", Text: func(p animalstore.Pet) string { return decimal(p.CategoryID) }, Drop: 1},
	{Title: "STATUS", Text: func(p animalstore.Pet) string { return string(p.Status) }, Colour: petColour},
}

func petColour(p animalstore.Pet) terminal.Colour {
	switch p.Status {
	case animalstore.PetAvailable:
		return terminal.Green
	case animalstore.PetPending:
		return terminal.Yellow
	}
	return terminal.Faint
}

// Orders are the columns of orders.
var Orders = []terminal.Column[animalstore.Order]{
	{Title: "ID", Text: func(o animalstore.Order) string { return decimal(o.ID) }},
	{Title: "PET", Text: func(o animalstore.Order) string { return decimal(o.PetID) }},
	{Title: "STATUS", Text: func(o animalstore.Order) string { return string(o.Status) }, Colour: orderColour},
	{Title: "PLACED (UTC)", Time: func(o animalstore.Order) time.Time { return o.CreatedAt.Time }, Drop: 1},
	{Title: "CHANGED (UTC)", Time: func(o animalstore.Order) time.Time { return o.UpdatedAt.Time }, Drop: 2},
}

func orderColour(o animalstore.Order) terminal.Colour {
	switch {
	case o.Status == animalstore.OrderDelivered:
		return terminal.Green
	case o.Status.Open():
		return terminal.Yellow
	}
	return terminal.Faint
}

// Categories are the columns of categories.
var Categories = []terminal.Column[animalstore.Category]{
	{Title: "ID", Text: func(c animalstore.Category) string { return decimal(c.ID) }},
	{Title: "NAME", Text: func(c animalstore.Category) string { return c.Name }, Shrink: true},
}

// OrderTitle is an order in a few words.
func OrderTitle(o animalstore.Order) string { return fmt.Sprintf("%s, pet %d", o.Status, o.PetID) }

// RemovalQuestion asks whether to remove these pets.
func RemovalQuestion(found []animalstore.Pet) string {
	names := make([]string, len(found))
	for i, pet := range found {
		names[i] = decimal(pet.ID) + " (" + terminal.Visible(pet.Name) + ")"
	}
	what := "pet"
	if len(found) > 1 {
		what = terminal.Count(int64(len(found)), "pet", "pets") + ":"
	}
	return fmt.Sprintf("Remove %s %s permanently?", what, strings.Join(names, ", "))
}

func decimal(n int64) string { return strconv.FormatInt(n, 10) }
