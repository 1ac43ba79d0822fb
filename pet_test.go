package animalstore

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
)

// code is the code of an error, or "".
func code(err error) Code {
	var coded *Error
	if errors.As(err, &coded) {
		return coded.Code
	}
	return ""
}

func TestNewPetValidate(t *testing.T) {
	tests := []struct {
		name string
		pet  NewPet
		want string // in the message; "": no error
	}{
		{"a name", NewPet{Name: "Rex"}, ""},
		{"no status yet", NewPet{Name: "Rex", Status: ""}, ""},
		{"each field", NewPet{Name: "Rex", CategoryID: -1 << 63, Status: PetSold}, ""},
		{"one character", NewPet{Name: "x"}, ""},
		{"spaces around", NewPet{Name: " x "}, ""},
		{"a control character", NewPet{Name: "\x01"}, ""},
		{"a character of zero width", NewPet{Name: "\u200b"}, ""},
		{"1024 letters", NewPet{Name: strings.Repeat("x", 1024)}, ""},
		{"1024 code points of four bytes", NewPet{Name: strings.Repeat("😀", 1024)}, ""},
		{"no name", NewPet{}, "name must not be empty"},
		{"1025 letters", NewPet{Name: strings.Repeat("x", 1025)}, "name must have at most 1024 characters, not 1025"},
		{"1025 code points of four bytes", NewPet{Name: strings.Repeat("😀", 1025)}, "not 1025"},
		{"a NUL", NewPet{Name: "a\x00b"}, "name must not contain"},
		{"a space", NewPet{Name: " "}, "name must not be white space only"},
		{"line breaks", NewPet{Name: "\t\n\v\f\r"}, "name must not be white space only"},
		{"all kinds of spaces", NewPet{Name: "\u0085\u00a0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000"}, "name must not be white space only"},
		{"not UTF-8", NewPet{Name: "a\xff"}, "name must be valid UTF-8"},
		{"an unknown status", NewPet{Name: "Rex", Status: "lost"}, "status must be one of available, pending, sold"},
		{"a status in capitals", NewPet{Name: "Rex", Status: "Sold"}, "status"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := test.pet.Validate()
			switch {
			case test.want == "" && err != nil:
				t.Errorf("got %v, want no error", err)
			case test.want != "" && (code(err) != ValidationFailed || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, want %s with %q", err, ValidationFailed, test.want)
			}
		})
	}
}

func TestPetJSON(t *testing.T) {
	got, err := json.Marshal(Pet{ID: 1, Name: "Rex", CategoryID: 7, Status: PetSold})
	if want := `{"id":1,"name":"Rex","categoryId":7,"status":"sold"}`; err != nil || string(got) != want {
		t.Errorf("got %s (%v), want %s", got, err, want)
	}
}

func TestErrorf(t *testing.T) {
	err := Errorf(PetNotFound, "there is no pet with id %d", 7)
	if want := "pet_not_found: there is no pet with id 7"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
	if code(error(err)) != PetNotFound {
		t.Errorf("got code %q, want %q", code(err), PetNotFound)
	}
}

func TestNotFound(t *testing.T) {
	for code, want := range map[Code]string{
		PetNotFound:      "pet_not_found: there is no pet with id -7",
		OrderNotFound:    "order_not_found: there is no order with id -7",
		CategoryNotFound: "category_not_found: there is no category with id -7",
		KeyNotFound:      "key_not_found: there is no key with id -7",
	} {
		if got := NotFound(code, -7).Error(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	want := "key_not_found: there is no such key: an id is a positive integer"
	if got := NoSuchID(KeyNotFound, "a positive integer").Error(); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestCodesAreListedOnce(t *testing.T) {
	sorted := slices.Sorted(slices.Values(Codes))
	if len(slices.Compact(sorted)) != len(Codes) {
		t.Errorf("got %q, want each once", Codes)
	}
}
