package main

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/rivo/uniseg"
)

// visible is a text from outside as one line that is safe on a terminal: what
// would move the cursor, colour the screen, turn the direction of writing or
// break the line is escaped as in Go. The backslash is, too, so that nothing is
// ambiguous.
func visible(s string) string {
	if strings.IndexFunc(s, func(r rune) bool { return r == '\\' || hidden(r) }) < 0 {
		return s
	}
	var b strings.Builder
	for _, r := range s {
		switch {
		case r == '\\':
			b.WriteString(`\\`)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r == '\r':
			b.WriteString(`\r`)
		case !hidden(r):
			b.WriteRune(r)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}

// wrapped breaks a text between words so that it fits a screen. Without one, it
// stays a line, which is easier to search for.
func wrapped(text string, width int) string {
	if width == 0 {
		return text
	}
	var b strings.Builder
	column := 0
	for word := range strings.SplitSeq(text, " ") {
		w := uniseg.StringWidth(word)
		switch {
		case column == 0:
		case column+1+w > width:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += w
	}
	return b.String()
}

// hidden reports whether a character does something else than to show. The
// joiners are not counted, for they belong to emoji and to some scripts.
func hidden(r rune) bool {
	const nonJoiner, joiner = '\u200c', '\u200d'
	return r != nonJoiner && r != joiner && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// escapeJSON does the same to JSON, where such characters are in strings only.
// The encoder escapes the ASCII ones, but not the rest, and some terminals take
// orders by U+009B as they do by ESC [.
func escapeJSON(text []byte) []byte {
	if strings.IndexFunc(string(text), func(r rune) bool { return r >= 0x7f && hidden(r) }) < 0 {
		return text
	}
	var b []byte
	for _, r := range string(text) {
		switch {
		case r < 0x7f || !hidden(r):
			b = append(b, string(r)...)
		case r < 0x10000:
			b = fmt.Appendf(b, `\u%04x`, r)
		default:
			r -= 0x10000
			b = fmt.Appendf(b, `\u%04x\u%04x`, 0xd800+r>>10, 0xdc00+r&0x3ff)
		}
	}
	return b
}
