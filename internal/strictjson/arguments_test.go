package strictjson

import (
	"slices"
	"testing"

	"animalstore"
)

func TestArguments(t *testing.T) {
	names := []string{"name", "id", "ids", "status", "gone"}
	a := ReadArguments([]byte(`{"name":"Rex","id":9007199254740993,"ids":[1,2e0],"status":"sold"}`), names)
	name, id, status := a.NonEmpty("name"), a.Require("id"), Choice(a, "status", animalstore.PetStatuses)
	if name == nil || *name != "Rex" || id != 9007199254740993 || status == nil || *status != animalstore.PetSold {
		t.Errorf("got %v, %d and %v, want Rex, 9007199254740993 and sold", name, id, status)
	}
	if ids := a.Integers("ids", 2); !slices.Equal(ids, []int64{1, 2}) {
		t.Errorf("got the ids %v, want 1 and 2", ids)
	}
	if a.String("gone") != nil || a.Integers("gone", 2) != nil || a.Err() != nil {
		t.Errorf("an absent argument: got a value or the error %v, want neither", a.Err())
	}
	if a := ReadArguments(nil, names); a.Positive("id") != nil || a.Err() != nil {
		t.Errorf("no arguments: got the error %v, want none", a.Err())
	}
}

func TestArgumentErrors(t *testing.T) {
	for _, test := range []struct {
		text  string
		code  animalstore.Code
		field string
	}{
		{`[]`, malformedJSON, ""},
		{`{"id":1,"id":2}`, malformedJSON, ""},
		{`{`, malformedJSON, ""},
		{`{}`, validationFailed, "id"},
		{`{"id":0}`, validationFailed, "id"},
		{`{"id":null}`, validationFailed, "id"},
		{`{"id":1,"ID":1}`, validationFailed, "name, id"},
		{`{"id":1,"name":""}`, validationFailed, "name"},
		{`{"id":1,"name":null}`, validationFailed, "name"},
		{`{"id":1,"status":["sold"]}`, validationFailed, "status"},
		{`{"id":1,"types":["sold","lost"]}`, validationFailed, "types"},
		{`{"id":"1","name":7}`, validationFailed, "id"}, // the first one that is read
	} {
		a := ReadArguments([]byte(test.text), []string{"name", "id", "status", "types"})
		a.Require("id")
		a.NonEmpty("name")
		Choice(a, "status", animalstore.PetStatuses)
		Choices(a, "types", animalstore.PetStatuses)
		if a.Err() == nil {
			t.Errorf("%s: got no error", test.text)
			continue
		}
		wantError(t, a.Err(), test.code, test.field)
	}
}

func TestNearest(t *testing.T) {
	names := []string{"petId", "status", "ids", "limit", "categoryId"}
	for name, want := range map[string]string{
		"pet_id": "petId", "PetID": "petId", "pet": "", "stauts": "status", "state": "status", "id": "", "IDs": "ids",
		"limits": "limit", "category": "categoryId", "category-id": "categoryId", "colour": "", "x": "",
	} {
		if got := nearest(name, names); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
}

func TestCheckItems(t *testing.T) {
	for text, field := range map[string]string{
		`{"pets":[{"name":1},{"name":1,"nmae":2}]}`: "pets[1].nmae (did you mean pets[1].name?)",
		`{"pets":[{"name":1}]}`:                     "", `{"pets":7}`: "", `{"pets":[7]}`: "", `{}`: "",
	} {
		a := ReadArguments([]byte(text), []string{"pets"})
		a.CheckItems("pets", []string{"name"})
		if field == "" && a.Err() != nil {
			t.Errorf("%s: got %v, want no error", text, a.Err())
		} else if field != "" {
			wantError(t, a.Err(), validationFailed, field)
		}
	}
}
