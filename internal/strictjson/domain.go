package strictjson

import (
	"errors"
	"strconv"
	"strings"
	"time"

	"animalstore"

	"github.com/go-json-experiment/json/jsontext"
)

// Decoding checks the form of a text: its fields and their types. The Validate methods
// of the decoded values check the rules of the domain.

// DecodeNewPet reads a pet to add. Its status is available unless the text sets it.
func DecodeNewPet(text []byte) (pet animalstore.NewPet, err error) {
	err = decodeObject(text, newPetFields(&pet)...)
	return pet, err
}

func newPetFields(pet *animalstore.NewPet) []field {
	pet.Status = animalstore.PetAvailable
	return []field{
		required("name", &pet.Name, readString),
		required("categoryId", &pet.CategoryID, readInteger),
		optional("status", &pet.Status, readOneOf(animalstore.PetStatuses)),
	}
}

// DecodeNewPetBatch reads pets to add at once. An error is about the first wrong one, even
// if only its value is wrong and the type of a later one.
func DecodeNewPetBatch(text []byte) (batch animalstore.NewPetBatch, err error) {
	err = decodeObject(text, required("pets", &batch.Pets, readNewPets))
	if err != nil && len(batch.Pets) > 0 {
		if invalid := batch.Validate(); invalid != nil {
			err = invalid
		}
	}
	return batch, err
}

// readNewPets returns the pets before the first with a wrong type, and its error.
func readNewPets(v jsontext.Value) (pets []animalstore.NewPet, err error) {
	items, err := readItems(v)
	if err != nil {
		return nil, errors.New("must be an array of pets")
	}
	for i, item := range items {
		var pet animalstore.NewPet
		if err := readObject(item, newPetFields(&pet)); err != nil {
			return pets, inField("["+strconv.Itoa(i)+"]", err)
		}
		pets = append(pets, pet)
	}
	return pets, nil
}

// DecodePetPatch reads changes to a pet.
func DecodePetPatch(text []byte) (patch animalstore.PetPatch, err error) {
	err = decodeObject(text,
		patched("name", &patch.Name, readString),
		patched("categoryId", &patch.CategoryID, readInteger),
		patched("status", &patch.Status, readOneOf(animalstore.PetStatuses)))
	return patch, err
}

// DecodeNewOrder reads an order to place.
func DecodeNewOrder(text []byte) (order animalstore.NewOrder, err error) {
	err = decodeObject(text,
		required("petId", &order.PetID, readInteger),
		optional("reference", &order.Reference, readOptionalText),
		optional("note", &order.Note, readOptionalText))
	return order, err
}

// DecodeOrderPatch reads changes to an order.
func DecodeOrderPatch(text []byte) (patch animalstore.OrderPatch, err error) {
	err = decodeObject(text,
		patched("status", &patch.Status, readOneOf(animalstore.OrderStatuses)),
		patched("reference", &patch.Reference, readOptionalText),
		patched("note", &patch.Note, readOptionalText))
	return patch, err
}

// readOptionalText reads a text, or null for none.
func readOptionalText(v jsontext.Value) (animalstore.OptionalText, error) {
	if v.Kind() == 'n' {
		return "", nil
	}
	text, err := readString(v)
	switch {
	case err != nil:
		return "", errors.New("must be a string, or null for none")
	case text == "":
		return "", errors.New("must not be empty: send null for none")
	}
	return animalstore.OptionalText(text), nil
}

// DecodeCategory reads a category without its id.
func DecodeCategory(text []byte) (category animalstore.Category, err error) {
	err = decodeObject(text, required("name", &category.Name, readString))
	return category, err
}

// DecodeNewKey reads a key to create, without its environment. It has the free plan and
// may read and write unless the text says otherwise.
func DecodeNewKey(text []byte) (animalstore.NewKey, error) {
	key := animalstore.NewKey{Plan: animalstore.PlanFree, Permissions: animalstore.Read | animalstore.Write}
	err := decodeObject(text,
		required("name", &key.Name, readString),
		optional("plan", &key.Plan, readOneOf(animalstore.Plans)),
		optional("limits", &key.Limits, readLimits),
		optional("permissions", &key.Permissions, readPermissions),
		optional("networks", &key.Networks, readNetworks),
		optional("expiresAt", &key.ExpiresAt, readExpiry))
	return key, err
}

// DecodeKeyPatch reads changes to a key.
func DecodeKeyPatch(text []byte) (patch animalstore.KeyPatch, err error) {
	err = decodeObject(text,
		patched("name", &patch.Name, readString),
		patched("plan", &patch.Plan, readOneOf(animalstore.Plans)),
		patched("limits", &patch.Limits, readLimits),
		patched("permissions", &patch.Permissions, readPermissions),
		patched("networks", &patch.Networks, readNetworks),
		patched("expiresAt", &patch.ExpiresAt, readExpiry),
		patched("suspended", &patch.Suspended, readBool))
	return patch, err
}

// DecodeGraceSeconds reads how long the old secret of a rotated key or webhook keeps
// working; nil if the text doesn't say.
func DecodeGraceSeconds(text []byte) (seconds *int64, err error) {
	err = decodeObject(text, patched("graceSeconds", &seconds, readInteger))
	return seconds, err
}

// DecodeNewWebhook reads a webhook to create.
func DecodeNewWebhook(text []byte) (webhook animalstore.NewWebhook, err error) {
	err = decodeObject(text,
		required("url", &webhook.URL, readString),
		optional("types", &webhook.Types, readEventPatterns),
		optional("description", &webhook.Description, readString))
	return webhook, err
}

// DecodeWebhookPatch reads changes to a webhook.
func DecodeWebhookPatch(text []byte) (patch animalstore.WebhookPatch, err error) {
	err = decodeObject(text,
		patched("url", &patch.URL, readString),
		patched("types", &patch.Types, readEventPatterns),
		patched("description", &patch.Description, readString),
		patched("state", &patch.State, readWebhookState))
	return patch, err
}

// DecodePingType reads which type of message to send to a webhook. It's a webhook.ping
// unless the text says otherwise.
func DecodePingType(text []byte) (animalstore.EventType, error) {
	eventType := animalstore.WebhookPing
	err := decodeObject(text, optional("type", &eventType, readPingType))
	return eventType, err
}

func readPingType(v jsontext.Value) (animalstore.EventType, error) {
	text, err := readString(v)
	if t, ok := animalstore.ParsePingType(text); err == nil && ok {
		return t, nil
	}
	return "", errors.New("must be a type of event such as pet.created")
}

// DecodeDeliveryRetry reads which deliveries to repeat.
func DecodeDeliveryRetry(text []byte) (which animalstore.DeliveryRetry, err error) {
	err = decodeObject(text,
		optional("state", &which.State, readOneOf(animalstore.RetryStates)),
		optional("since", &which.Since, readTime))
	return which, err
}

// readWebhookState reads the states that a client can set.
func readWebhookState(v jsontext.Value) (animalstore.WebhookState, error) {
	text, err := readString(v)
	if state := animalstore.WebhookState(text); err == nil && (state == animalstore.WebhookActive || state == animalstore.WebhookPaused) {
		return state, nil
	}
	return "", errors.New("must be active or paused")
}

func readEventPatterns(v jsontext.Value) (animalstore.EventPatterns, error) {
	list, err := readStrings(v)
	if err != nil {
		return "", errors.New("must be an array of types of events")
	}
	patterns, err := animalstore.NewEventPatterns(list)
	var invalid *animalstore.Error
	if errors.As(err, &invalid) {
		return "", errors.New(strings.TrimPrefix(invalid.Message, "types "))
	}
	return patterns, err
}

func readLimits(v jsontext.Value) (limits animalstore.Limits, err error) {
	err = readObject(v, []field{
		required("perMinute", &limits.PerMinute, readPositive),
		required("perDay", &limits.PerDay, readPositive),
	})
	return limits, err
}

func readPermissions(v jsontext.Value) (set animalstore.Permissions, err error) {
	names, err := readStrings(v)
	for _, name := range names {
		p, ok := animalstore.ParsePermission(name)
		if !ok {
			err = errors.New("unknown permission")
		}
		set |= p
	}
	if err != nil {
		return 0, errors.New("must be an array of " + animalstore.JoinOr(animalstore.AllPermissions.Names()))
	}
	return set, nil
}

func readNetworks(v jsontext.Value) (animalstore.Networks, error) {
	list, err := readStrings(v)
	if err != nil {
		return "", errors.New("must be an array of networks such as 203.0.113.0/24; empty for all addresses")
	}
	networks, err := animalstore.NewNetworks(list)
	var invalid *animalstore.Error
	if errors.As(err, &invalid) {
		return "", errors.New(strings.TrimPrefix(invalid.Message, "networks "))
	}
	return networks, err
}

func readBool(v jsontext.Value) (bool, error) {
	switch v.Kind() {
	case 't':
		return true, nil
	case 'f':
		return false, nil
	}
	return false, errors.New("must be true or false")
}

// readExpiry reads a time, or null for never.
func readExpiry(v jsontext.Value) (animalstore.Time, error) {
	if v.Kind() == 'n' {
		return animalstore.Time{}, nil
	}
	expiry, err := readTime(v)
	if err != nil {
		return expiry, errors.New(err.Error() + ", or null for never")
	}
	if expiry.IsZero() { // would mean never
		return expiry, errors.New("must be in the future")
	}
	return expiry, nil
}

func readTime(v jsontext.Value) (animalstore.Time, error) {
	text, err := readString(v)
	if err != nil {
		return animalstore.Time{}, errTime
	}
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.UTC().Year() > 9999 {
		return animalstore.Time{}, errTime
	}
	return animalstore.At(t), nil
}

var errTime = errors.New("must be a time such as 2027-01-31T12:00:00Z")
