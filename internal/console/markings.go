package console

import (
	"cmp"

	"animalstore"
	"animalstore/client"
)

// Changes of marked pets, other than to a status.
const (
	changeCategory = "category"
	changeRemove   = "remove"
)

// petMarking changes the pets of the list.
var petMarking = &marking{
	path: "/console/pets", one: "pet", many: "pets",
	changes: []string{string(animalstore.PetAvailable), string(animalstore.PetPending), string(animalstore.PetSold), changeCategory, changeRemove},
	wording: func(change string) wording {
		switch change {
		case changeCategory:
			return wording{Question: "Change the category of %s?", Button: "Change %s", Verb: "changed", Notice: "saved"}
		case string(animalstore.PetSold):
			return wording{
				Question: "Set %s to sold?", Button: "Change %s", Verb: "changed", Notice: "saved",
				Warning: "This can’t be undone: the pets stay sold.",
			}
		case changeRemove:
			return wording{
				Question: "Remove %s?", Button: "Remove %s", Verb: "removed", Notice: "removed", Red: true,
				Warning: "This can’t be undone. Their photos are removed too. Their orders stay.",
			}
		}
		return wording{Question: "Set %s to " + change + "?", Button: "Change %s", Verb: "changed", Notice: "saved"}
	},
	change: (*visit).changeMarkedPet,
}

func (v *visit) changeMarkedPet(p *markedPage, m marked) error {
	if p.Change == changeRemove {
		err := v.api.DeletePet(v.r.Context(), m.ID, client.IfMatch(m.etag))
		if codeOf(err) == animalstore.PetNotFound { // sent twice
			return nil
		}
		return err
	}
	patch := p.patch
	if p.Change != changeCategory {
		status := animalstore.PetStatus(p.Change)
		patch.Status = &status
	}
	_, err := v.api.UpdatePet(v.r.Context(), m.ID, patch, client.IfMatch(m.etag))
	if !isStale(err) || !v.may(petsRead) {
		return err
	}
	if !p.applied[m.ID] {
		if err := p.readApplied(v); err != nil {
			return err
		}
	}
	if p.applied[m.ID] {
		return nil // sent twice, or someone made the same change
	}
	return err
}

// readApplied reads which of the pets that are left already are as the change makes them,
// with one call: all are if the form was sent twice.
func (p *markedPage) readApplied(v *visit) error {
	var q animalstore.PetQuery
	for _, m := range p.Marked {
		q.IDs = append(q.IDs, m.ID)
	}
	pets, _, err := readRows(v, matching(v.api.ListPets, q))
	p.applied = map[int64]bool{}
	for _, pet := range pets {
		sameCategory := p.patch.CategoryID != nil && *p.patch.CategoryID == pet.CategoryID
		p.applied[pet.ID] = string(pet.Status) == p.Change || sameCategory
	}
	return err
}

// orderMarking changes the orders of a list.
var orderMarking = &marking{
	path: "/console/orders", one: "order", many: "orders",
	changes: []string{string(animalstore.OrderApproved), string(animalstore.OrderDelivered), string(animalstore.OrderCancelled)},
	wording: func(change string) wording {
		const final = "This can’t be undone: the orders stay "
		switch animalstore.OrderStatus(change) {
		case animalstore.OrderDelivered:
			return wording{
				Question: "Deliver %s?", Button: "Deliver %s", Verb: "delivered", Notice: change,
				Warning: final + change + ", and their pets become sold.",
			}
		case animalstore.OrderCancelled:
			return wording{
				Question: "Cancel %s?", Button: "Cancel %s", Verb: "cancelled", Notice: change, Red: true,
				Warning: final + change + ", and their pets become available again.",
			}
		}
		return wording{Button: "Approve %s", Verb: "approved", Notice: change}
	},
	change: (*visit).changeMarkedOrder,
}

func (v *visit) changeMarkedOrder(p *markedPage, m marked) error {
	status := animalstore.OrderStatus(p.Change)
	_, err := v.api.UpdateOrder(v.r.Context(), m.ID, animalstore.OrderPatch{Status: &status}, client.IfMatch(m.etag))
	if !isStale(err) || !v.may(ordersRead) {
		return err
	}
	order, readErr := v.api.GetOrder(v.r.Context(), m.ID)
	if readErr == nil && order.Status == status {
		return nil // sent twice, or someone made the same change
	}
	return cmp.Or(readErr, err)
}
