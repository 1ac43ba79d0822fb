package terminal

import (
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf16"

	"github.com/rivo/uniseg"
)

// Visible returns text from outside as one line that is safe on a terminal.
// Characters that would move the cursor, change colours, reverse the writing
// direction or break the line are escaped as in Go. Backslashes are escaped as
// well, so that the result is unambiguous.
func Visible(s string) string {
	var b strings.Builder
	for _, r := range s {
		if r == '\\' || hidden(r) {
			quoted := strconv.QuoteRuneToASCII(r)
			b.WriteString(quoted[1 : len(quoted)-1])
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// hidden reports whether a character has an effect other than being shown. The
// joiners don't count, because emoji and some scripts need them.
func hidden(r rune) bool {
	const nonJoiner, joiner = '\u200c', '\u200d'
	return r != nonJoiner && r != joiner && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// escapeJSON escapes the same characters in JSON. The encoder has escaped the ASCII ones
// but DEL, and some terminals obey U+009B like ESC [.
func escapeJSON(text []byte) (escaped []byte) {
	for _, r := range string(text) {
		if r < 0x7f || !hidden(r) {
			escaped = append(escaped, string(r)...)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			escaped = fmt.Appendf(escaped, `\u%04x`, unit)
		}
	}
	return escaped
}

// cut shortens text to the given number of columns, with an ellipsis at the end.
func cut(text string, width int) string {
	if uniseg.StringWidth(text) <= width {
		return text
	}
	var b strings.Builder
	used, state := 0, -1
	for text != "" {
		var cluster string
		var w int
		cluster, text, w, state = uniseg.FirstGraphemeClusterInString(text, state)
		if used+w > width-1 {
			break
		}
		b.WriteString(cluster)
		used += w
	}
	return b.String() + "…"
}

// Grouped formats a number for people: 1,234,567.
func Grouped(n int64) string {
	digits := strconv.FormatInt(n, 10)
	for i := len(digits) - 3; i > 0; i -= 3 {
		digits = digits[:i] + "," + digits[i:]
	}
	return digits
}

// Count formats a number of things: 1 pet, 2,000 pets.
func Count(n int64, singular, plural string) string {
	if n == 1 {
		return "1 " + singular
	}
	return Grouped(n) + " " + plural
}

// Duration formats a duration for people, rounded up to seconds.
func Duration(d time.Duration) string {
	seconds := int64((d + time.Second - 1) / time.Second)
	minutes, hours := seconds/60, seconds/3600
	switch {
	case hours >= 48:
		return fmt.Sprintf("%d d", hours/24)
	case hours > 0:
		return fmt.Sprintf("%d h %d min", hours, minutes%60)
	case minutes > 0:
		return fmt.Sprintf("%d min %d s", minutes, seconds%60)
	}
	return fmt.Sprintf("%d s", seconds)
}

const never = "never"

// DateTime formats a time for people, in UTC. The zero time is "never".
func DateTime(t time.Time) string {
	if t.IsZero() {
		return never
	}
	return t.UTC().Format(time.DateTime)
}

// relativeTime is how far a time is from now.
func relativeTime(t, now time.Time) string {
	if t.After(now) {
		return "in " + Duration(t.Sub(now))
	}
	return Duration(now.Sub(t)) + " ago"
}
