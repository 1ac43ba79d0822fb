package db

import (
	"context"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"animalstore"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// Names finds pets by name.
type Names interface {
	// PetsByName returns a page of the pets of whose name an entry begins with q.Prefix
	// (see [NameEntries]), each at its smallest such entry, in ascending order of their
	// [NamePosition]. It examines at most MaxNamesRead entries, so a page may be short or
	// empty although there are more. next is where the next page begins, or nil if no
	// entries are left. Its cost doesn't depend on the number of pets stored.
	PetsByName(ctx context.Context, q NameQuery) (pets []animalstore.Pet, next *NamePosition, err error)
}

// MaxNamesRead is the most entries one call of PetsByName examines.
const MaxNamesRead = 2000

// NameQuery is a page of the pets with a name.
type NameQuery struct {
	animalstore.PetQuery
	Prefix string       // the name as [FoldName] returns it, not empty
	After  NamePosition // the zero value is the start of the list
	Limit  int          // at least 1
}

// NamePosition is the position of a pet in the list by name.
type NamePosition struct {
	Entry string
	ID    int64
}

const (
	// maxWords is how many words of a name have an entry.
	maxWords = 4
	// maxEntry is the maximum length of an entry, in code points. The beginning of a word
	// that callers can search for has at most 100 and is at most three times as long when
	// folded.
	maxEntry = 300
)

// NameEntry is an entry of a pet's name in the index of names.
type NameEntry struct {
	Text string
	// Shared is the length in bytes of the prefix that the text has in common with the next
	// smaller entry of the name. A search for no more than it finds the pet there or before, and
	// skips this entry.
	Shared int
}

// NameEntries returns the entries of a name, in ascending order: the rest of the folded
// name from each of its first words on, truncated to maxEntry code points. A name without
// words has none.
func NameEntries(name string) []NameEntry {
	entries := make([]NameEntry, 0, maxWords)
	rest := FoldName(name)
	for more := rest != ""; more && len(entries) < maxWords; {
		entries = append(entries, NameEntry{Text: cut(rest)})
		_, rest, more = strings.Cut(rest, " ")
	}
	slices.SortFunc(entries, func(a, b NameEntry) int { return strings.Compare(a.Text, b.Text) })
	entries = slices.Compact(entries)
	for i := 1; i < len(entries); i++ {
		entries[i].Shared = commonPrefix(entries[i-1].Text, entries[i].Text)
	}
	return entries
}

// isSeparator reports whether r separates words.
func isSeparator(r rune) bool { return unicode.IsSpace(r) || strings.ContainsRune("-_/.,()", r) }

// cut returns the first maxEntry code points.
func cut(text string) string {
	if len(text) <= maxEntry {
		return text
	}
	n := 0
	for i := range text {
		if n++; n > maxEntry {
			return text[:i]
		}
	}
	return text
}

func commonPrefix(a, b string) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// FoldName returns the form in which names are compared: composed (NFC), with full case
// folding, and composed again (folding takes apart some letters, and ι isn't the beginning
// of ΐ), with one space between words. Names that differ only in case, in how their accents
// are encoded or in how their words are separated have the same form, in every engine. It is
// empty for a name of separators alone.
func FoldName(name string) string {
	var folded string
	if isASCII(name) { // as most are; this is five times as fast
		folded = strings.ToLower(name)
	} else {
		folded = norm.NFC.String(cases.Fold().String(norm.NFC.String(name)))
	}
	return strings.Join(strings.FieldsFunc(folded, isSeparator), " ")
}

func isASCII(name string) bool {
	for i := range len(name) {
		if name[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// Start returns the position before the first entry that the query can find: ids begin at 1.
func (q NameQuery) Start() NamePosition {
	if q.After.ID == 0 {
		return NamePosition{Entry: q.Prefix}
	}
	return q.After
}

// End returns the exclusive upper bound of the entries that begin with the prefix.
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
	return strings.Repeat(string(utf8.MaxRune), maxEntry+1) // after all entries
}

// Lists reports whether a pet is listed at an entry that begins with the prefix.
func (q NameQuery) Lists(shared int64) bool { return shared < int64(len(q.Prefix)) }

// Matches reports whether a pet with a matching name passes the other filters.
func (q NameQuery) Matches(categoryID int64, status animalstore.PetStatus) bool {
	return (q.CategoryID == nil || *q.CategoryID == categoryID) && (q.Status == "" || q.Status == status)
}
