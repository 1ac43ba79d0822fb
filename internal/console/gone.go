package console

import (
	"slices"

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
	var pets, petsOfPhotos []int64
	hasWebhooks := false
	for _, r := range rows {
		switch r.kind {
		case "pet":
			pets = append(pets, r.id)
		case "photo":
			petsOfPhotos = append(petsOfPhotos, r.petID)
		case "webhook":
			hasWebhooks = true
		}
		if r.petID != 0 {
			pets = append(pets, r.petID)
		}
	}
	left := map[string]bool{} // by subject
	if pets != nil && v.may(petsRead) {
		for pet, err := range v.api.ListPets(v.r.Context(), animalstore.PetQuery{IDs: distinct(pets)}) {
			if err != nil {
				return err
			}
			left[animalstore.EventSubject("pet", pet.ID)] = true
		}
	}
	for next, calls := "", 0; petsOfPhotos != nil && calls < photoCalls && (calls == 0 || next != ""); calls++ {
		var photos []animalstore.Photo
		var err error
		q := animalstore.PhotoQuery{PetIDs: distinct(petsOfPhotos)}
		photos, next, err = readRows(v, matching(v.api.ListPhotos, q), client.FromCursor(next))
		if err != nil {
			return err
		}
		for _, photo := range photos {
			left[animalstore.EventSubject("photo", photo.ID)] = true
		}
	}
	if hasWebhooks {
		for webhook, err := range v.api.ListWebhooks(v.r.Context()) {
			if err != nil {
				return err
			}
			left[animalstore.EventSubject("webhook", webhook.ID)] = true
		}
	}
	for i := range rows {
		r := &rows[i]
		if slices.Contains([]string{"pet", "photo", "webhook"}, r.kind) && !left[r.Subject] {
			r.Path = ""
		}
		if !left[animalstore.EventSubject("pet", r.petID)] { // that of the pet is the only link among the details
			for j := range r.Summary {
				r.Summary[j].Path = ""
			}
		}
	}
	return nil
}

// distinct returns ids, each once.
func distinct(ids []int64) []int64 {
	ids = slices.Clone(ids)
	slices.Sort(ids)
	return slices.Compact(ids)
}
