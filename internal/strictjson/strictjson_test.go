package strictjson

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"animalstore"
)

const (
	malformedJSON    = animalstore.MalformedJSON
	validationFailed = animalstore.ValidationFailed
)

// wantError checks the code of an error, and that its message names a field.
func wantError(t *testing.T, err error, code animalstore.Code, field string) {
	t.Helper()
	var coded *animalstore.Error
	if !errors.As(err, &coded) || coded.Code != code || !strings.Contains(coded.Message, field) {
		t.Errorf("got %v, want %s that names %q", err, code, field)
	}
}

func TestDecodeNewPet(t *testing.T) {
	rex := animalstore.NewPet{Name: "Rex", CategoryID: 7, Status: animalstore.PetAvailable}
	for text, want := range map[string]animalstore.NewPet{
		`{"name":"Rex","categoryId":7}`:                                    rex,
		" \r\n\t{ \"categoryId\" : 7 , \"name\" : \"Rex\" } \n":            rex,
		`{"name":"Rex","categoryId":7.0}`:                                  rex,
		`{"name":"Rex","categoryId":0.7e1}`:                                rex,
		`{"name":"\u0052e\u0078","categoryId":7,"id":null,"x":{"a":[{}]}}`: rex,
		`{"name":"Rex","Name":"Max","NAME":1,"categoryId":7}`:              rex,
		`{"name":"","categoryId":-9223372036854775808,"status":"sold"}`:    {CategoryID: -1 << 63, Status: animalstore.PetSold},
		`{"name":"\ud83d\ude00","categoryId":9223372036854775807}`:         {Name: "😀", CategoryID: 1<<63 - 1, Status: animalstore.PetAvailable},
		`{"name":"Rex","categoryId":7,"status":"pending"}`:                 {Name: "Rex", CategoryID: 7, Status: animalstore.PetPending},
	} {
		if got, err := DecodeNewPet([]byte(text)); err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
	}
}

func TestDecodeNewPetErrors(t *testing.T) {
	for _, test := range []struct {
		text  string
		code  animalstore.Code
		field string
	}{
		{"", malformedJSON, ""},
		{"Rex", malformedJSON, ""},
		{"[]", malformedJSON, ""},
		{`{"name":"Rex"`, malformedJSON, ""},
		{`{"name":"Rex","categoryId":7,}`, malformedJSON, ""},
		{"\xef\xbb\xbf" + `{"name":"Rex","categoryId":7}`, malformedJSON, ""}, // a byte order mark
		{"{\"name\":\"a\nb\",\"categoryId\":7}", malformedJSON, ""},
		{`{"name":"Rex","categoryId":7,"x":` + strings.Repeat("[", 200_000) + strings.Repeat("]", 200_000) + `}`, malformedJSON, ""},
		{`{"name":"Rex","categoryId":7} {}`, malformedJSON, ""},
		{`{"name":"Rex","categoryId":07}`, malformedJSON, ""},
		{`{"name":"Rex","name":"Max","categoryId":7}`, malformedJSON, ""},
		{`{"name":1,"x":{"a":1,"\u0061":2}}`, malformedJSON, ""},
		{"{\"name\":\"\xff\",\"categoryId\":7}", malformedJSON, ""},
		{"{\"x\":\"\xff\"}", malformedJSON, ""},
		{`{"name":"\ud800","categoryId":7}`, malformedJSON, ""},
		{`{}`, validationFailed, "name"},
		{`{"Name":"Rex","categoryId":7}`, validationFailed, "name"},
		{`{"name":"Rex"}`, validationFailed, "categoryId"},
		{`{"name":null,"categoryId":7}`, validationFailed, "name"},
		{`{"name":"Rex","categoryId":null}`, validationFailed, "categoryId"},
		{`{"name":"Rex","categoryId":"7"}`, validationFailed, "categoryId"},
		{`{"name":"Rex","categoryId":7.5}`, validationFailed, "categoryId"},
		{`{"name":"Rex","categoryId":9223372036854775808}`, validationFailed, "categoryId"},
		{`{"name":"Rex","categoryId":7,"status":null}`, validationFailed, "status"},
		{`{"name":"Rex","categoryId":7,"status":"Sold"}`, validationFailed, "status"},
	} {
		t.Run(test.text[:min(len(test.text), 80)], func(t *testing.T) {
			_, err := DecodeNewPet([]byte(test.text))
			wantError(t, err, test.code, test.field)
		})
	}
}

// TestTooManyFields counts the fields of all objects together, including those in
// arrays and those that nothing reads.
func TestTooManyFields(t *testing.T) {
	pet := func(more string) []byte { return []byte(`{"name":"Rex","categoryId":7` + more + `}`) }
	flat := func(n int) (text string) {
		for i := range n {
			text += fmt.Sprintf(`,"f%d":0`, i)
		}
		return text
	}
	nested := func(n int) string { return `,"x":[0` + strings.Repeat(`,{"a":"b"}`, n-1) + `]` }
	deep := func(n int) string { return `,"x":` + strings.Repeat(`{"a":`, n-1) + "1" + strings.Repeat("}", n-1) }
	for name, more := range map[string]func(int) string{"in one object": flat, "in objects in an array": nested, "inside one another": deep} {
		t.Run(name, func(t *testing.T) {
			if _, err := DecodeNewPet(pet(more(998))); err != nil {
				t.Errorf("1,000 fields: got %v, want none", err)
			}
			_, err := DecodeNewPet(pet(more(999)))
			wantError(t, err, malformedJSON, "1000")
		})
	}
	t.Run("values in an array are not fields", func(t *testing.T) {
		if _, err := DecodeNewPet(pet(`,"x":["a"` + strings.Repeat(`,"a"`, 5000) + `]`)); err != nil {
			t.Error(err)
		}
	})
	t.Run("scanning stops there", func(t *testing.T) {
		_, err := DecodeNewPet(pet(flat(999) + ", this isn't JSON"))
		wantError(t, err, malformedJSON, "1000")
	})
}

// TestPatchPresence: a patch has exactly the fields that the text has, including null
// and zero ones.
func TestPatchPresence(t *testing.T) {
	for text, want := range map[string]animalstore.PetPatch{
		`{}`:                         {},
		`{"name":""}`:                {Name: new("")},
		`{"categoryId":0}`:           {CategoryID: new(int64(0))},
		`{"status":"sold","id":"x"}`: {Status: new(animalstore.PetSold)},
	} {
		if got, err := DecodePetPatch([]byte(text)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]animalstore.OrderPatch{
		`{"status":"approved","x":1}`:   {Status: new(animalstore.OrderApproved)},
		`{"reference":"A","note":null}`: {Reference: new(animalstore.OptionalText("A")), Note: new(animalstore.OptionalText(""))},
	} {
		if got, err := DecodeOrderPatch([]byte(text)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
	}
	noon := animalstore.At(time.Date(2027, 1, 31, 12, 0, 0, 0, time.UTC))
	for text, want := range map[string]animalstore.KeyPatch{
		`{}`:                 {},
		`{"expiresAt":null}`: {ExpiresAt: new(animalstore.Time{})},
		`{"permissions":[]}`: {Permissions: new(animalstore.Permissions(0))},
		`{"name":"shop","plan":"pro","permissions":["admin","read"],"expiresAt":"2027-01-31T13:00:00+01:00"}`: {
			Name: new("shop"), Plan: new(animalstore.PlanPro), Permissions: new(animalstore.Admin | animalstore.Read), ExpiresAt: &noon},
		`{"networks":["203.0.113.7"],"suspended":false}`: {Networks: new(animalstore.Networks("203.0.113.7/32")), Suspended: new(false)},
		`{"limits":{"perDay":2,"perMinute":1.0}}`:        {Limits: &animalstore.Limits{PerMinute: 1, PerDay: 2}},
	} {
		if got, err := DecodeKeyPatch([]byte(text)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: got %+v, %v, want %+v", text, got, err, want)
		}
	}
}

func TestDecodeKeyPatchErrors(t *testing.T) {
	for text, field := range map[string]string{
		`{"name":null}`:                             "name",
		`{"plan":"gold"}`:                           "plan",
		`{"limits":null}`:                           "limits",
		`{"limits":{"perMinute":1}}`:                "limits.perDay",
		`{"limits":{"perMinute":0,"perDay":1}}`:     "limits.perMinute",
		`{"permissions":null}`:                      "permissions",
		`{"networks":null}`:                         "networks",
		`{"networks":[1]}`:                          "networks",
		`{"networks":["203.0.113.7/24"]}`:           "number 1",
		`{"suspended":null}`:                        "suspended",
		`{"permissions":["read",7]}`:                "permissions",
		`{"permissions":["reads"]}`:                 "permissions",
		`{"expiresAt":7}`:                           "expiresAt",
		`{"expiresAt":"tomorrow"}`:                  "expiresAt",
		`{"expiresAt":"9999-12-31T23:59:59-01:00"}`: "expiresAt",
		// The zero time, which would mean never.
		`{"expiresAt":"0001-01-01T00:00:00.0001Z"}`: "expiresAt",
	} {
		_, err := DecodeKeyPatch([]byte(text))
		wantError(t, err, validationFailed, field)
	}
}

// TestParseInteger: integers are exact in any notation. Text that isn't a number is refused,
// because CSV fields aren't checked before.
func TestParseInteger(t *testing.T) {
	for text, want := range map[string]int64{
		"7": 7, "-7": -7, "7.0": 7, "70e-1": 7, "007": 7, "-0.0": 0, "1E+2": 100, "0e99": 0, "7e+001": 70,
		"9223372036854775807.0": 1<<63 - 1, "-92233720368547758080e-1": -1 << 63, "0.0000000000000000001e19": 1,
	} {
		if got, err := ParseInteger([]byte(text)); err != nil || got != want {
			t.Errorf("%q: got %d, %v, want %d", text, got, err, want)
		}
	}
	for text, want := range map[string]error{
		"": errInteger, "-": errInteger, "+7": errInteger, " 7": errInteger, "7 ": errInteger, "7.": errInteger, ".7": errInteger,
		".": errInteger, "e": errInteger, "7e": errInteger, "7e+": errInteger, "e7": errInteger, "7e1.0": errInteger,
		"7_0": errInteger, "0x7": errInteger, "seven": errInteger, "--7": errInteger, "7-": errInteger, "7.0.0": errInteger,
		"7e1e1": errInteger, "7/1": errInteger, "Inf": errInteger, "1e100": errInteger, "1e-100": errInteger, strings.Repeat("9", 101): errInteger,
		"7.5": errFraction, "9223372036854775806.5": errFraction, "9.2233720368547758071e18": errFraction, "1e-99": errFraction,
		"9223372036854775808": errRange, "-9223372036854775809.0": errRange, "1e99": errRange,
	} {
		if got, err := ParseInteger([]byte(text)); err != want {
			t.Errorf("%.40q: got %d, %v, want %v", text, got, err, want)
		}
	}
}
