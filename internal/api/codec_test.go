package api_test

import (
	"bytes"
	"encoding/json"
	"math/big"
	"testing"

	"animalstore"
	"animalstore/internal/api"
	"animalstore/internal/db"
)

// standardJSON is v as encoding/json writes it without escapes for HTML.
func standardJSON(t testing.TB, v any) []byte {
	t.Helper()
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// FuzzPetEncoder compares our encoder with encoding/json, byte for byte.
func FuzzPetEncoder(f *testing.F) {
	for _, name := range []string{
		"", "Rex", `"\`, "\x00\x01\x1f \x7f", "\b\f\n\r\t", "<a href='x'>&</a>", "äöü😀", "a\u2028b\u2029c", "\u2027\u202a",
		"\xff", "a\xc3", "\xed\xa0\x80", "\xf4\x90\x80\x80", "�", "\ufeff", "\u0085", "\xe2\x80", "\xe2\x80\xa8\xe2",
	} {
		f.Add(int64(1), name, int64(7), uint8(0))
	}
	f.Add(int64(-1<<63), "x", int64(1<<63-1), uint8(2))
	f.Fuzz(func(t *testing.T, id int64, name string, categoryID int64, status uint8) {
		pet := animalstore.Pet{ID: id, Name: name, CategoryID: categoryID, Status: animalstore.PetStatuses[status%3]}
		if got, want := append(db.AppendPet([]byte("before"), &pet), '\n'), append([]byte("before"), standardJSON(t, pet)...); !bytes.Equal(got, want) {
			t.Errorf("got %s, want %s", got, want)
		}
		for _, pets := range [][]animalstore.Pet{{}, {pet}, {pet, pet, {Status: animalstore.PetSold}}} {
			if got, want := api.EncodePets(pets), standardJSON(t, pets); !bytes.Equal(got, want) {
				t.Errorf("got %s, want %s", got, want)
			}
		}
	})
}

// TestPetEncoderCharacters encodes every Unicode character that takes up to three bytes, and
// some that take four.
func TestPetEncoderCharacters(t *testing.T) {
	for r := rune(0); r <= 0x10fff; r += 64 {
		var name []rune
		for i := range rune(64) {
			name = append(name, r+i)
		}
		pet := animalstore.Pet{ID: 1, Name: string(name), Status: animalstore.PetSold}
		if got, want := append(db.AppendPet(nil, &pet), '\n'), standardJSON(t, pet); !bytes.Equal(got, want) {
			t.Fatalf("from %U: got %s, want %s", r, got, want)
		}
	}
}

// exactInteger parses a JSON number with math/big and reports whether it is an int64.
func exactInteger(number []byte) (int64, bool) {
	r, ok := new(big.Rat).SetString(string(number))
	if !ok || !r.IsInt() || !r.Num().IsInt64() {
		return 0, false
	}
	return r.Num().Int64(), true
}
