package db

import (
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

func TestFoldName(t *testing.T) {
	for _, test := range []struct{ name, want string }{
		{"Rex", "rex"}, {"REX the 3rd", "rex the 3rd"},
		{"Mr. Whiskers", "mr whiskers"}, {"(Luna)", "luna"}, {"Jean-Luc", "jean luc"}, {"a__b", "a b"}, {"O'Neil", "o'neil"},
		{" - a ./\t b, ", "a b"}, {"A\u00A0\u3000\u2003B\u0085", "a b"}, {"Ä.\u0301ß", "ä \u0301ss"}, {"–·a\u200Bb…", "–·a\u200Bb…"},
		{"", ""}, {" ", ""}, {"...", ""}, {"-_/.,()\u00A0", ""}, {"\u0301", "\u0301"},
		{strings.Repeat("a.", 50), strings.TrimSuffix(strings.Repeat("a ", 50), " ")},
		{"Straße", "strasse"}, {"STRASSE", "strasse"}, {"STRAẞE", "strasse"},
		{"İzmir", "i\u0307zmir"}, {"I", "i"}, {"ı", "ı"},
		{"ΣΊΣΥΦΟΣ", "σίσυφοσ"}, {"Σίσυφος", "σίσυφοσ"},
		{"Zoë", "zoë"}, {"ZOE\u0308", "zoë"}, {"Å", "å"}, {"\u212B", "å"},
		{"ﬁsh", "fish"}, {"ŉ", "ʼn"}, {"ΐ", "ΐ"}, {"ι\u0308\u0301", "ΐ"}, {"ᾳ", "αι"}, {"և", "եւ"},
		{"Ⴀ", "ⴀ"}, {"\U00010400", "\U00010428"},
		{"たま", "たま"}, {"か\u3099", "が"}, {"강아지", "강아지"}, {"\u1100\u1161", "가"},
		{strings.Repeat("ß", 200), strings.Repeat("ss", 200)},
		{strings.Repeat("A", 301), strings.Repeat("a", 301)}, {strings.Repeat("ß", 1024), strings.Repeat("s", 2048)},
	} {
		if got := FoldName(test.name); got != test.want {
			t.Errorf("FoldName(%q) = %q, want %q", test.name, got, test.want)
		}
	}
}

func TestNameEntries(t *testing.T) {
	long := strings.Repeat("🐶", 400)
	for _, test := range []struct {
		name string
		want []NameEntry
	}{
		{"Rex", []NameEntry{{"rex", 0}}},
		{"Mochi the Fluffy", []NameEntry{{"fluffy", 0}, {"mochi the fluffy", 0}, {"the fluffy", 0}}},
		{"a b c d e f", []NameEntry{{"a b c d e f", 0}, {"b c d e f", 0}, {"c d e f", 0}, {"d e f", 0}}},
		{"rex rex", []NameEntry{{"rex", 0}, {"rex rex", 3}}},
		{"Rex-rexine_rex.rex", []NameEntry{{"rex", 0}, {"rex rex", 3}, {"rex rexine rex rex", 7}, {"rexine rex rex", 3}}},
		{" Rex", []NameEntry{{"rex", 0}}},
		{"(Luna)", []NameEntry{{"luna", 0}}},
		{"Mr. Whiskers", []NameEntry{{"mr whiskers", 0}, {"whiskers", 0}}},
		{"Jean-Luc", []NameEntry{{"jean luc", 0}, {"luc", 0}}},
		{"a__b", []NameEntry{{"a b", 0}, {"b", 0}}},
		{"O'Neil", []NameEntry{{"o'neil", 0}}},
		{"-a - b/c_d.e", []NameEntry{{"a b c d e", 0}, {"b c d e", 0}, {"c d e", 0}, {"d e", 0}}},
		{"(a)\u3000,b\u00A0", []NameEntry{{"a b", 0}, {"b", 0}}},
		{"Ä e\u0301", []NameEntry{{"ä é", 0}, {"é", 1}}},                   // the same first byte
		{"100% \u0301x", []NameEntry{{"100% \u0301x", 0}, {"\u0301x", 0}}}, // an accent is no separator
		{"O'Neill–Ω", []NameEntry{{"o'neill–ω", 0}}},
		{"...", nil},
		{"\u00A0(-) ", nil},
		{long, []NameEntry{{strings.Repeat("🐶", 300), 0}}},
		{"x " + long, []NameEntry{{"x " + strings.Repeat("🐶", 298), 0}, {strings.Repeat("🐶", 300), 0}}},
		{strings.Repeat("a", 300) + " b", []NameEntry{{strings.Repeat("a", 300), 0}, {"b", 0}}},
		{strings.Repeat("a ", 200), []NameEntry{{strings.Repeat("a ", 150), 0}}},    // all four are equal when cut
		{strings.Repeat("a  . ", 200), []NameEntry{{strings.Repeat("a ", 150), 0}}}, // and what is cut is folded
	} {
		if got := NameEntries(test.name); !slices.Equal(got, test.want) {
			t.Errorf("NameEntries(%q)\ngot  %+v\nwant %+v", test.name, got, test.want)
		}
	}
}

// TestFoldNameOfEveryRune: a character folds like all others that differ from it only in
// case, into at most three code points, so that the beginning of a name is never cut off.
func TestFoldNameOfEveryRune(t *testing.T) {
	const last = 0x2FFFF // no later character has a case or a decomposition
	for r := rune(1); r <= last; r++ {
		if !utf8.ValidRune(r) {
			continue
		}
		got := FoldName(string(r))
		if isSeparator(r) {
			if got != "" {
				t.Errorf("%U folds to %q, want a space, which isn't kept at the ends", r, got)
			}
			continue
		}
		if n := utf8.RuneCountInString(got); n < 1 || n > 3 || !utf8.ValidString(got) {
			t.Errorf("%U folds to %q, want one to three code points", r, got)
		}
		if same := unicode.SimpleFold(r); !unicode.Is(unicode.Cherokee, r) && FoldName(string(same)) != got {
			t.Errorf("%U folds to %q, but %U, which differs in case, to %q", r, got, same, FoldName(string(same)))
		}
		if decomposed := norm.NFD.String(string(r)); FoldName(decomposed) != got {
			t.Errorf("%U folds to %q, but %q, which is the same, to %q", r, got, decomposed, FoldName(decomposed))
		}
		if general := cases.Fold().String(string(r)); isASCII(string(r)) && got != general {
			t.Errorf("%U folds to %q, want %q as in any other text", r, got, general)
		}
	}
}

func TestNameQueryEnd(t *testing.T) {
	for _, test := range []struct{ prefix, want string }{
		{"rex", "rey"}, {"z", "{"}, {"a\U0010FFFF", "b"}, {"\uD7FF", "\uE000"}, {"a\uFFFF", "a\U00010000"},
	} {
		if got := (NameQuery{Prefix: test.prefix}).End(); got != test.want {
			t.Errorf("names that begin with %q end before %q, want %q", test.prefix, got, test.want)
		}
	}
	longest := strings.Repeat("\U0010FFFF", maxEntry)
	if got := (NameQuery{Prefix: "\U0010FFFF"}).End(); got <= longest || !utf8.ValidString(got) {
		t.Errorf("the last name of all is after %q", got)
	}
}
