package db

import (
	"time"

	"animalstore"
)

// sampleID is the id of all sample data in pings. No store ever assigns an id this high,
// so a receiver that mistakes a sample for real data overwrites nothing.
const sampleID = 999_999_999_999

// PingData returns the data of a ping: sample data for a type of event, as in an event at
// the given time, or {} for an animalstore.WebhookPing.
func PingData(t animalstore.EventType, at animalstore.Time) string {
	if t == animalstore.WebhookPing {
		return "{}"
	}
	switch t.Resource() {
	case "pet":
		return EventData(samplePet(t))
	case "photo":
		return EventData(animalstore.Photo{ID: sampleID, PetID: sampleID, ContentType: "image/jpeg", Width: 1600, Height: 1200, Bytes: 250_000, CreatedAt: at})
	case "order":
		return EventData(sampleOrder(t, at))
	case "category":
		return EventData(animalstore.Category{ID: sampleID, Name: "Sample category"})
	case "key":
		return EventData(sampleKey(t, at))
	case "webhook":
		return EventData(sampleWebhook(t, at))
	}
	panic("no sample data of the type " + t)
}

func samplePet(t animalstore.EventType) *animalstore.Pet {
	pet := animalstore.Pet{ID: sampleID, Name: "Sample pet", CategoryID: sampleID, Status: animalstore.PetAvailable}
	if t == animalstore.PetUpdated {
		pet.Status = animalstore.PetPending
	}
	return &pet
}

func sampleOrder(t animalstore.EventType, at animalstore.Time) animalstore.Order {
	order := animalstore.Order{ID: sampleID, PetID: sampleID, Status: animalstore.OrderPlaced, CreatedAt: at, UpdatedAt: at}
	if t == animalstore.OrderUpdated {
		order.Status = animalstore.OrderApproved
	}
	return order
}

func sampleKey(t animalstore.EventType, at animalstore.Time) animalstore.Key {
	key := animalstore.Key{
		ID: sampleID, Name: "Sample key", Plan: animalstore.PlanFree, Permissions: animalstore.Read,
		Environment: animalstore.Production, CreatedAt: at,
	}
	key.Limits, _ = key.Plan.LimitsFor(animalstore.Limits{}) // fails for enterprise only
	switch t {
	case animalstore.KeyRevoked:
		key.RevokedAt = at
	case animalstore.KeyBannedEvent:
		key.Ban = animalstore.Ban{Until: animalstore.At(at.Add(time.Minute)), Level: 1}
	}
	return key
}

func sampleWebhook(t animalstore.EventType, at animalstore.Time) animalstore.Webhook {
	webhook := animalstore.Webhook{
		ID: sampleID, URL: "https://example.com/sample", Types: animalstore.DefaultEventPatterns, Description: "Sample webhook",
		State: animalstore.WebhookActive, CreatedAt: at,
	}
	if t == animalstore.WebhookDisabledEvent {
		webhook.Disable("this is a sample")
	}
	return webhook
}
