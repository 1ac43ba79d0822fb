package animalstore

import (
	"errors"
	"net/url"
	"slices"
	"strings"
	"testing"
)

func TestParseEventQueryTypes(t *testing.T) {
	for list, want := range map[string][]EventType{
		"pet.created":                 {PetCreated},
		"order.created,pet.*":         {PetCreated, PetUpdated, PetDeleted, OrderCreated},
		"category.*,category.updated": {CategoryUpdated},
		"photo.*":                     {PhotoCreated, PhotoDeleted},
		"webhook.disabled,key.banned": {KeyBannedEvent, WebhookDisabledEvent},
		"pet.*,order.*,category.*,key.*,webhook.*,photo.*": EventTypes,
	} {
		got, err := ParseEventQuery(url.Values{"type": strings.SplitN(list, ",", 2)})
		if err != nil || !slices.Equal(got.Types.Types(), want) {
			t.Errorf("types %q: got %q, %v, want %q", list, got.Types.Types(), err, want)
		}
	}
	for _, list := range []string{"", ",", "pet", "pet.", "*", ".*", "pet.*,", "Pet.created", " pet.created", "pet.created ", "dog.*", "pet.*.*", "webhook.ping", "category.created"} {
		got, err := ParseEventQuery(url.Values{"type": {list}})
		var coded *Error
		if !errors.As(err, &coded) || coded.Code != InvalidParameter {
			t.Errorf("types %q: got %q, %v, want invalid_parameter", list, got.Types, err)
		}
	}
}

func TestEventPermission(t *testing.T) {
	for resource, want := range map[string]Permissions{"pet": PetsRead, "photo": PetsRead, "category": PetsRead, "order": OrdersRead, "key": Admin, "webhook": Admin} {
		for _, eventType := range EventTypes {
			if got := eventType.Permission(); eventType.Resource() == resource && got != want {
				t.Errorf("%s: got %s, want %s", eventType, got, want)
			}
		}
	}
}

func TestEventSubjects(t *testing.T) {
	for subject, want := range map[string]int64{"pet/17": 17, "category/-9223372036854775808": -1 << 63, "order/1": 1, "key/2": 2, "webhook/3": 3} {
		resource, id, ok := ParseEventSubject(subject)
		if !ok || id != want || EventSubject(resource, id) != subject {
			t.Errorf("ParseEventSubject(%q) = %q, %d, %t", subject, resource, id, ok)
		}
	}
	for _, subject := range []string{"", "pet", "pet/", "pet/01", "pet/+1", "pet/1/2", "dog/1", "/1", "pet/9223372036854775808", "Pet/1"} {
		if resource, id, ok := ParseEventSubject(subject); ok {
			t.Errorf("ParseEventSubject(%q) = %q, %d, want none", subject, resource, id)
		}
	}
}
