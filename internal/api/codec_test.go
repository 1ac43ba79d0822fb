package api_test

import (
	"bytes"
	"encoding/json"
	"math/big"
	"regexp"
	"strconv"
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

var jsonNumber = regexp.MustCompile(`^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE]([-+]?[0-9]+))?$`)

// FuzzInteger compares our integer parser with math/big.
func FuzzInteger(f *testing.F) {
	for _, number := range []string{
		"0", "-0", "1", "1.0", "1e2", "1E+2", "0.1e1", "123.000e-1", "9223372036854775807", "9223372036854775808",
		"-9223372036854775808", "-9223372036854775809", "92233720368547758070e-1", "0.0000000000000000001e19", "1e400", "1e-400", "0e99999", "18446744073709551616",
	} {
		f.Add(number)
	}
	f.Fuzz(func(t *testing.T, number string) {
		parts := jsonNumber.FindStringSubmatch(number)
		if parts == nil || len(number) > 2000 {
			return // the decoder lets nothing else through
		}
		got, err := api.ParseInteger([]byte(number))
		// A rational of this size would be written out in full.
		if exponent, errExponent := strconv.Atoi(parts[4]); parts[4] != "" && (errExponent != nil || exponent > 5000 || exponent < -5000) {
			if err == nil && got != 0 {
				t.Errorf("%s: got %d, want it refused or 0", number, got)
			}
			return
		}
		want, ok := exactInteger([]byte(number))
		if ok != (err == nil) || got != want {
			t.Errorf("%s: got %d (%v), want %d (%t)", number, got, err, want, ok)
		}
	})
}
