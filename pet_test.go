package animalstore

import (
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
