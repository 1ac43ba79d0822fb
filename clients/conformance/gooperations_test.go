package conformance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"animalstore"
	"animalstore/client"
)

// goArgs are the arguments of all operations. README.md lists those of each.
type goArgs struct {
	PetID, OrderID, CategoryID, KeyID, WebhookID, DeliveryID, PhotoID int64

	PetIDs   []int64
	Picture  []byte
	Size     int // of a picture of zeros, instead of Picture
	Pet      animalstore.NewPet
	Pets     []animalstore.NewPet
	Times    int // how often Pets is repeated
	Salt     string
	Category animalstore.Category
	Key      goKey
	Webhook  struct {
		URL, Description string
		Types            []string
	}
	Patch goPatch
	Query struct {
		Status     goStatuses
		CategoryID *int64
		IDs        []int64
		Name       string
		PetID      int64
		State      animalstore.DeliveryState
		Reference  animalstore.OptionalText
		Oldest     bool
		KeyID      int64
		Code       animalstore.Code
		RequestID  string
		Since      animalstore.Time
		PageSize   int
	}
	Events struct {
		After          *int64
		Before         int64
		Latest, Newest bool
		Types          []string
		Subject        string
		PetID          int64
		Since          animalstore.Time
	}
	Which        animalstore.DeliveryRetry
	Limit, Hours int
	GraceSeconds int
	Type         animalstore.EventType
	Reference    animalstore.OptionalText
	Note         animalstore.OptionalText

	take int
}

// goStatuses are the statuses that a list is restricted to: one, or a list of them.
type goStatuses []animalstore.OrderStatus

func (s *goStatuses) UnmarshalJSON(data []byte) error {
	if data[0] != '[' {
		*s = make(goStatuses, 1)
		return json.Unmarshal(data, &(*s)[0])
	}
	return json.Unmarshal(data, (*[]animalstore.OrderStatus)(s))
}

// goKey is a key to create, with permissions by name.
type goKey struct {
	Name        string
	Plan        animalstore.Plan
	Limits      animalstore.Limits
	Permissions []string
}

func (k goKey) newKey() client.NewKey {
	return client.NewKey{Name: k.Name, Plan: k.Plan, Limits: k.Limits, Permissions: permissions(k.Permissions)}
}

func permissions(names []string) (p animalstore.Permissions) {
	for _, name := range names {
		one, _ := animalstore.ParsePermission(name)
		p |= one
	}
	return p
}

// goPatch is a patch of any resource.
type goPatch struct {
	Name        *string
	CategoryID  *int64
	Status      *string
	Plan        *animalstore.Plan
	URL         *string
	Description *string
	State       *animalstore.WebhookState
	Reference   goText
	Note        goText
}

// goText is a text of a patch. If it was null, it is set and empty.
type goText struct{ set *animalstore.OptionalText }

func (t *goText) UnmarshalJSON(data []byte) error {
	t.set = new(animalstore.OptionalText)
	return json.Unmarshal(data, t.set)
}

func (p goPatch) order() animalstore.OrderPatch {
	return animalstore.OrderPatch{Status: (*animalstore.OrderStatus)(p.Status), Reference: p.Reference.set, Note: p.Note.set}
}

func (p goPatch) pet() animalstore.PetPatch {
	return animalstore.PetPatch{Name: p.Name, CategoryID: p.CategoryID, Status: (*animalstore.PetStatus)(p.Status)}
}

func (a goArgs) events() animalstore.EventQuery {
	e := a.Events
	return animalstore.EventQuery{
		Types: animalstore.EventPatterns(strings.Join(e.Types, ",")), Subject: e.Subject, PetID: e.PetID,
		After: e.After, Latest: e.Latest, Before: e.Before, Newest: e.Newest, Since: e.Since,
	}
}

func (a goArgs) grace() time.Duration { return time.Duration(a.GraceSeconds) * time.Second }

// call calls the method of the Go client that has this name in the protocol.
func (a goArgs) call(ctx context.Context, c *client.Client, name string, o []client.CallOption) (any, error) {
	switch name {
	case "listPets":
		q := animalstore.PetQuery{Status: animalstore.PetStatus(animalstore.JoinNames(a.Query.Status)), CategoryID: a.Query.CategoryID, IDs: a.Query.IDs, Name: a.Query.Name}
		return take(a.take, c.ListPets(ctx, q, o...))
	case "findPet":
		return c.FindPet(ctx, a.PetID, o...)
	case "getPet":
		return c.GetPet(ctx, a.PetID, o...) //nolint:staticcheck // deprecated, and still a promise
	case "createPet":
		return c.CreatePet(ctx, a.Pet, o...)
	case "createPetBatch":
		return c.CreatePetBatch(ctx, a.Pets, o...)
	case "importPets":
		done, err := c.ImportPets(ctx, slices.Repeat(a.Pets, max(a.Times, 1)), client.ImportOptions{Salt: a.Salt})
		return map[string]any{"pets": done.Pets, "added": done.Added, "existing": done.Existing}, err
	case "updatePet":
		return c.UpdatePet(ctx, a.PetID, a.Patch.pet(), o...)
	case "deletePet":
		return nil, c.DeletePet(ctx, a.PetID, o...)
	case "listOrders":
		q := animalstore.OrderQuery{Statuses: a.Query.Status, PetID: a.Query.PetID, Reference: a.Query.Reference, Oldest: a.Query.Oldest}
		return take(a.take, c.ListOrders(ctx, q, o...))
	case "placeOrder":
		return c.PlaceOrder(ctx, animalstore.NewOrder{PetID: a.PetID, Reference: a.Reference, Note: a.Note}, o...)
	case "getOrder":
		return c.GetOrder(ctx, a.OrderID, o...)
	case "updateOrder":
		return c.UpdateOrder(ctx, a.OrderID, a.Patch.order(), o...)
	case "getInventory":
		return c.GetInventory(ctx, animalstore.InventoryQuery{CategoryID: a.Query.CategoryID}, o...)
	case "listCategories":
		return take(a.take, c.ListCategories(ctx, o...))
	case "getCategory":
		return c.GetCategory(ctx, a.CategoryID, o...)
	case "putCategory":
		return c.PutCategory(ctx, a.Category, o...)
	case "listEvents":
		return take(a.take, c.ListEvents(ctx, a.events(), o...))
	case "events":
		return take(a.take, c.Events(ctx, a.events(), o...))
	case "listEventPage":
		events, next, err := c.ListEventPage(ctx, a.events(), a.Limit, o...)
		return map[string]any{"events": events, "next": next}, err
	case "latestEventId":
		return c.LatestEventID(ctx, o...)
	case "getLimits":
		return c.GetLimits(ctx, o...)
	case "addPhoto":
		return c.AddPhoto(ctx, a.PetID, bytes.NewReader(append(a.Picture, make([]byte, a.Size)...)), o...)
	case "listPhotos":
		return take(a.take, c.ListPhotos(ctx, animalstore.PhotoQuery{PetIDs: a.PetIDs}, o...))
	case "getPhoto":
		return c.GetPhoto(ctx, a.PhotoID, o...)
	case "getImage":
		return describeImage(c.GetImage(ctx, a.PhotoID, o...))
	case "getThumbnail":
		return describeImage(c.GetThumbnail(ctx, a.PhotoID, o...))
	case "deletePhoto":
		return nil, c.DeletePhoto(ctx, a.PhotoID, o...)
	case "listFailures":
		q := animalstore.FailureQuery{KeyID: a.Query.KeyID, Code: a.Query.Code, RequestID: a.Query.RequestID, Since: a.Query.Since}
		return take(a.take, c.ListFailures(ctx, q, o...))
	case "getUsage":
		return c.GetUsage(ctx, a.Hours, o...)
	case "getStatus":
		return c.GetStatus(ctx, o...)
	case "listKeys":
		return take(a.take, c.ListKeys(ctx, o...))
	case "createKey":
		return c.CreateKey(ctx, a.Key.newKey(), o...)
	case "getKey":
		return c.GetKey(ctx, a.KeyID, o...)
	case "updateKey":
		return c.UpdateKey(ctx, a.KeyID, animalstore.KeyPatch{Name: a.Patch.Name, Plan: a.Patch.Plan}, o...)
	case "revokeKey":
		return nil, c.RevokeKey(ctx, a.KeyID, o...)
	case "rotateKey":
		return c.RotateKey(ctx, a.KeyID, a.grace(), o...)
	case "unbanKey":
		return c.UnbanKey(ctx, a.KeyID, o...)
	case "getKeyUsage":
		return c.GetKeyUsage(ctx, a.KeyID, a.Hours, o...)
	case "listWebhooks":
		return take(a.take, c.ListWebhooks(ctx, o...))
	case "createWebhook":
		types := animalstore.EventPatterns(strings.Join(a.Webhook.Types, ","))
		return c.CreateWebhook(ctx, animalstore.NewWebhook{URL: a.Webhook.URL, Types: types, Description: a.Webhook.Description}, o...)
	case "getWebhook":
		return c.GetWebhook(ctx, a.WebhookID, o...)
	case "updateWebhook":
		return c.UpdateWebhook(ctx, a.WebhookID, animalstore.WebhookPatch{URL: a.Patch.URL, Description: a.Patch.Description, State: a.Patch.State}, o...)
	case "deleteWebhook":
		return nil, c.DeleteWebhook(ctx, a.WebhookID, o...)
	case "rotateWebhook":
		return c.RotateWebhook(ctx, a.WebhookID, a.grace(), o...)
	case "pingWebhook":
		if a.Type != "" {
			return c.PingWebhookAs(ctx, a.WebhookID, a.Type, o...)
		}
		return c.PingWebhook(ctx, a.WebhookID, o...)
	case "listDeliveries":
		return take(a.take, c.ListDeliveries(ctx, a.WebhookID, animalstore.DeliveryQuery{State: a.Query.State}, o...))
	case "getDelivery":
		return c.GetDelivery(ctx, a.WebhookID, a.DeliveryID, o...)
	case "retryDelivery":
		return c.RetryDelivery(ctx, a.WebhookID, a.DeliveryID, o...)
	case "retryDeliveries":
		return c.RetryDeliveries(ctx, a.WebhookID, a.Which, o...)
	}
	return nil, errors.New("the adapter for go doesn't know the operation " + name)
}

func describeImage(image client.Image, err error) (any, error) {
	return map[string]any{"contentType": image.ContentType, "size": len(image.Data)}, err
}
