package db

import (
	"context"
	"strings"
	"unicode/utf8"

	"animalstore"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Names finds pets by name.
type Names interface {
	// PetsByName returns a page of the pets whose folded name begins with q.Prefix, in
	// ascending order of their [NamePosition]. It examines at most MaxNamesRead
	// pets, so a page with a filter may be short or empty although there are more. next
	// is where the next page begins, or nil if no pets are left. Its cost doesn't depend
	// on the number of pets stored.
	PetsByName(ctx context.Context, q NameQuery) (pets []animalstore.Pet, next *NamePosition, err error)
}

// MaxNamesRead is the most pets one call of PetsByName examines.
const MaxNamesRead = 2000

// NameQuery selects the pets that match all of its fields.
type NameQuery struct {
	Prefix     string // as [FoldName] returns it, not empty
	CategoryID *int64 // nil: any
	Status     animalstore.PetStatus
	After      NamePosition // the zero value is the start of the list
	Limit      int          // at least 1
}

// NamePosition is the position of a pet in the list by name.
type NamePosition struct {
	Folded string
	ID     int64
}

// maxFolded is how many code points of a folded name are stored and sorted by. The
// beginning of a name that callers can search for has at most 100 and is at most three
// times as long when folded.
const maxFolded = 300

// FoldName returns the form in which names are compared: composed (NFC), with full case
// folding, composed again (folding takes apart some letters, and ι isn't the beginning of
// ΐ), and cut off after maxFolded code points. Names that differ only in case or in
// how their accents are encoded have the same form, in every engine.
func FoldName(name string) string {
	if folded, ok := foldASCII(name); ok {
		return folded
	}
	folded := strings.Map(foldCherokee, norm.NFC.String(cases.Fold().String(norm.NFC.String(name))))
	n := 0
	for i := range folded {
		if n++; n > maxFolded {
			return folded[:i]
		}
	}
	return folded
}

// foldCherokee folds small Cherokee letters into capitals, as Unicode does in this one
// script. Package cases swaps them.
func foldCherokee(r rune) rune {
	switch {
	case r >= 0xAB70 && r <= 0xABBF:
		return r - 0xAB70 + 0x13A0
	case r >= 0x13F8 && r <= 0x13FD:
		return r - 8
	}
	return r
}

// foldASCII is FoldName for names in ASCII, which most are. It is five times as fast.
func foldASCII(name string) (folded string, ok bool) {
	for i := range len(name) {
		if name[i] >= utf8.RuneSelf {
			return "", false
		}
	}
	return strings.ToLower(name[:min(len(name), maxFolded)]), true
}

// Start returns the position before the first pet that the query can find: ids begin at 1.
func (q NameQuery) Start() NamePosition {
	if q.After.ID == 0 {
		return NamePosition{Folded: q.Prefix}
	}
	return q.After
}

// End returns the exclusive upper bound of the folded names that begin with the prefix.
func (q NameQuery) End() string {
	before := q.Prefix
	for before != "" {
		last, size := utf8.DecodeLastRuneInString(before)
		before = before[:len(before)-size]
		switch {
		case last == 0xD7FF:
			return before + "\uE000" // UTF-8 has no surrogates
		case last < utf8.MaxRune:
			return before + string(last+1)
		}
	}
	return strings.Repeat(string(utf8.MaxRune), maxFolded+1) // after all names
}

// Matches reports whether a pet with a matching name passes the other filters.
func (q NameQuery) Matches(categoryID int64, status animalstore.PetStatus) bool {
	return (q.CategoryID == nil || *q.CategoryID == categoryID) && (q.Status == "" || q.Status == status)
}
