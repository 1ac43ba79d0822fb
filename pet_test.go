package animalstore

import (
	"encoding/json"
	"errors"
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

// wantCode checks the code of an error; "" is for no error.
func wantCode(t *testing.T, err error, want Code) {
	t.Helper()
	if code(err) != want || want == "" && err != nil {
		t.Errorf("got %v, want the code %q", err, want)
	}
}

func TestNewPetValidate(t *testing.T) {
	tests := []struct {
		name  string
		pet   NewPet
		wrong string // the field that the error names; "": no error
	}{
		{"a name", NewPet{Name: "Rex"}, ""},
		{"each field", NewPet{Name: "Rex", CategoryID: -1 << 63, Status: PetSold}, ""},
		{"spaces around", NewPet{Name: " x "}, ""},
		{"a control character", NewPet{Name: "\x01"}, ""},
		{"a character of zero width", NewPet{Name: "\u200b"}, ""},
		{"1024 code points of four bytes", NewPet{Name: strings.Repeat("😀", 1024)}, ""},
		{"no name", NewPet{}, "name"},
		{"1025 code points of four bytes", NewPet{Name: strings.Repeat("😀", 1025)}, "name"},
		{"a NUL", NewPet{Name: "a\x00b"}, "name"},
		{"a space", NewPet{Name: " "}, "name"},
		{"line breaks", NewPet{Name: "\t\n\v\f\r"}, "name"},
		{"all kinds of spaces", NewPet{Name: "\u0085\u00a0\u1680\u2000\u200a\u2028\u2029\u202f\u205f\u3000"}, "name"},
		{"not UTF-8", NewPet{Name: "a\xff"}, "name"},
		{"an unknown status", NewPet{Name: "Rex", Status: "lost"}, "status"},
		{"a status in capitals", NewPet{Name: "Rex", Status: "Sold"}, "status"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			err := test.pet.Validate()
			if test.wrong == "" {
				wantCode(t, err, "")
				return
			}
			wantCode(t, err, ValidationFailed)
			if err != nil && !strings.Contains(err.Error(), test.wrong) {
				t.Errorf("got %v, want it to name the field %s", err, test.wrong)
			}
		})
	}
}

// TestPetMoves tries every change of status, with and without an open order.
func TestPetMoves(t *testing.T) {
	allowed := map[[2]PetStatus]bool{
		{PetAvailable, PetPending}: true, {PetPending, PetAvailable}: true,
		{PetAvailable, PetSold}: true, {PetPending, PetSold}: true,
	}
	for _, from := range PetStatuses {
		for _, to := range PetStatuses {
			for _, ordered := range []bool{false, true} {
				p := Pet{ID: 7, Status: from}
				err := p.SetStatus(to, ordered)
				want := from == to || allowed[[2]PetStatus{from, to}] && !ordered
				switch {
				case want && (err != nil || p.Status != to):
					t.Errorf("%s to %s, ordered %t: got %s, %v, want it moved", from, to, ordered, p.Status, err)
				case !want && (code(err) != InvalidTransition || p.Status != from):
					t.Errorf("%s to %s, ordered %t: got %s, %v, want it refused", from, to, ordered, p.Status, err)
				}
			}
		}
	}
}

func TestPetChecks(t *testing.T) {
	for _, status := range PetStatuses {
		p := Pet{ID: 7, Status: status}
		if err := p.CheckOrderable(); (err == nil) != (status == PetAvailable) || err != nil && code(err) != PetNotAvailable {
			t.Errorf("order of a pet that is %s: got %v", status, err)
		}
		for _, ordered := range []bool{false, true} {
			if err := p.CheckRemovable(ordered); (err == nil) == ordered || err != nil && code(err) != InvalidTransition {
				t.Errorf("removal of a pet that is %s, ordered %t: got %v", status, ordered, err)
			}
		}
	}
}

func TestPetPatch(t *testing.T) {
	rex := Pet{ID: 17, Name: "Rex", CategoryID: 7, Status: PetAvailable}
	for _, test := range []struct {
		name    string
		patch   PetPatch
		ordered bool
		want    Pet
		code    Code
	}{
		{"nothing", PetPatch{}, false, rex, ""},
		{"the name", PetPatch{Name: new("Max")}, true, Pet{17, "Max", 7, PetAvailable}, ""},
		{"category 0", PetPatch{CategoryID: new(int64(0))}, false, Pet{17, "Rex", 0, PetAvailable}, ""},
		{"everything", PetPatch{new("Max"), new(int64(-1)), new(PetSold)}, false, Pet{17, "Max", -1, PetSold}, ""},
		{"the current status", PetPatch{Status: new(PetAvailable)}, true, rex, ""},
		{"an empty name", PetPatch{Name: new("")}, false, rex, ValidationFailed},
		{"an empty status", PetPatch{Status: new(PetStatus(""))}, false, rex, ValidationFailed},
		{"a valid name with an unknown status", PetPatch{Name: new("Max"), Status: new(PetStatus("lost"))}, false, rex, ValidationFailed},
		{"a valid name with a status that is not allowed", PetPatch{Name: new("Max"), Status: new(PetSold)}, true, rex, InvalidTransition},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := rex
			err := test.patch.Apply(&got, test.ordered)
			wantCode(t, err, test.code)
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
			if err := test.patch.Validate(); (err != nil) != (test.code == ValidationFailed) {
				t.Errorf("Validate: got %v, with %q from Apply", err, test.code)
			}
		})
	}
}

// TestPatchJSON: a patch has the fields that are set. A key's expiry that is never
// is null.
func TestPatchJSON(t *testing.T) {
	for _, test := range []struct {
		patch any
		want  string
	}{
		{PetPatch{}, `{}`},
		{PetPatch{Name: new(""), CategoryID: new(int64(0))}, `{"name":"","categoryId":0}`},
		{OrderPatch{Status: new(OrderApproved)}, `{"status":"approved"}`},
		{OrderPatch{Reference: new(OptionalText("")), Note: new(OptionalText("x"))}, `{"reference":null,"note":"x"}`},
		{NewOrder{PetID: 3}, `{"petId":3}`},
		{NewOrder{PetID: 3, Reference: "a", Note: "b"}, `{"petId":3,"reference":"a","note":"b"}`},
		{KeyPatch{Permissions: new(Read | Write), ExpiresAt: new(Time{})}, `{"permissions":["read","write"],"expiresAt":null}`},
	} {
		if got, err := json.Marshal(test.patch); err != nil || string(got) != test.want {
			t.Errorf("%+v: got %s, %v, want %s", test.patch, got, err, test.want)
		}
	}
}
