package console

import (
	"iter"
	"slices"
	"strconv"
	"strings"

	"animalstore"
	"animalstore/client"
)

// photoCalls is how often photos are listed to find out which are left. The others are
// shown without a link.
const photoCalls = 3

// unlinkGone removes links to pets, photos and webhooks that are gone, or that the key may
// not read: their removal may be among newer events than those in the rows. Everything else
// that has events stays.
func (v *visit) unlinkGone(rows []eventRow) error {
	pets, photos, webhooks := linked(rows, "pet"), linked(rows, "photo"), linked(rows, "webhook")
	if !v.may(petsRead) {
		unlink(rows, "pet", nil)
		pets = nil
	}
	if pets != nil {
		left := map[int64]bool{}
		for pet, err := range v.api.ListPets(v.r.Context(), client.PetQuery{IDs: pets}) {
			if err != nil {
				return err
			}
			left[pet.ID] = true
		}
		unlink(rows, "pet", left)
	}
	if photos != nil {
		left, err := v.photosLeft(rows)
		if err != nil {
			return err
		}
		unlink(rows, "photo", left)
	}
	if webhooks != nil {
		left := map[int64]bool{}
		for webhook, err := range v.api.ListWebhooks(v.r.Context(), client.PageQuery{PageSize: listedWebhooks}) {
			if err != nil {
				return err
			}
			left[webhook.ID] = true
		}
		unlink(rows, "webhook", left)
	}
	return nil
}

// listedWebhooks is how many webhooks one call lists: all.
const listedWebhooks = 100

// photosLeft returns which photos of the pets in the rows exist.
func (v *visit) photosLeft(rows []eventRow) (left map[int64]bool, err error) {
	left = map[int64]bool{}
	var pets []int64
	for _, r := range rows {
		if kind, _ := r.subject(); kind == "photo" && r.Path != "" && r.petID != 0 && !slices.Contains(pets, r.petID) {
			pets = append(pets, r.petID)
		}
	}
	next := ""
	for calls := 0; calls < photoCalls && pets != nil && (calls == 0 || next != ""); calls++ {
		var photos []animalstore.Photo
		photos, next, err = readRows(next, func(options ...client.CallOption) iter.Seq2[animalstore.Photo, error] {
			return v.api.ListPhotos(v.r.Context(), client.PhotoQuery{PetIDs: pets, PageSize: listedPhotos}, options...)
		})
		if err != nil {
			return nil, err
		}
		for _, p := range photos {
			left[p.ID] = true
		}
	}
	return left, nil
}

// subject is what the event is about.
func (r eventRow) subject() (kind string, id int64) {
	kind, digits, _ := strings.Cut(r.Subject, "/")
	id, _ = strconv.ParseInt(digits, 10, 64) // the API sends a number
	return kind, id
}

// linked returns the ids of the resources of a kind that rows link to.
func linked(rows []eventRow, kind string) (ids []int64) {
	add := func(id int64) {
		if id != 0 && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	for _, r := range rows {
		if k, id := r.subject(); k == kind && r.Path != "" {
			add(id)
		}
		if kind == "pet" {
			add(r.petID)
		}
	}
	return ids
}

// unlink removes the links to resources of a kind that aren't left.
func unlink(rows []eventRow, kind string, left map[int64]bool) {
	for i := range rows {
		r := &rows[i]
		if k, id := r.subject(); k == kind && !left[id] {
			r.Path = ""
		}
		if kind == "pet" && !left[r.petID] {
			for j := range r.Summary {
				r.Summary[j].Path = ""
			}
		}
	}
}
