package terminal

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/rivo/uniseg"
)

// Visible returns text from outside as one line that is safe on a terminal.
// Characters that would move the cursor, change colours, reverse the writing
// direction or break the line are escaped as in Go. Backslashes are escaped as
// well, so that the result is unambiguous.
func Visible(s string) string {
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

// hidden reports whether a character has an effect other than being shown. The
// joiners don't count, because emoji and some scripts need them.
func hidden(r rune) bool {
	const nonJoiner, joiner = '\u200c', '\u200d'
	return r != nonJoiner && r != joiner && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Zl, unicode.Zp)
}

// escapeJSON escapes the same characters in JSON, where they occur in strings
// only. The encoder escapes the ASCII ones but not the others, and some
// terminals obey U+009B like ESC [.
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

// Wrap breaks text between words to fit a width in columns. A width of 0 leaves it on
// one line, which is easier to search for. Lines that begin with two spaces are
// commands to paste and stay unchanged.
func Wrap(text string, width int) string {
	if width == 0 {
		return text
	}
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		if !strings.HasPrefix(line, "  ") {
			lines[i] = wrapLine(line, width)
		}
	}
	return strings.Join(lines, "\n")
}

func wrapLine(text string, width int) string {
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

// WrapCommands breaks long lines before a flag, with a backslash, so that a shell
// still reads them as one.
func WrapCommands(lines string, width int) string {
	const indent = "      "
	var wrapped []string
	for line := range strings.SplitSeq(lines, "\n") {
		for len(line) > width {
			at := strings.LastIndex(line[:width-1], " --")
			if at <= len(indent) {
				break
			}
			wrapped = append(wrapped, line[:at]+` \`)
			line = indent + line[at+1:]
		}
		wrapped = append(wrapped, line)
	}
	return strings.Join(wrapped, "\n")
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
	digits := fmt.Sprint(n)
	var b strings.Builder
	for i, d := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(d)
	}
	return b.String()
}

// Count formats a number of things: 1 pet, 2,000 pets.
func Count(n int64, singular, plural string) string {
	if n == 1 {
		return "1 " + singular
	}
	return Grouped(n) + " " + plural
}

const barWidth = 36

// Bar draws two numbers as parts of a bar, in proportion to the largest sum of the
// two in a table. Any number above 0 is visible.
func Bar(solid, shaded, largest int64) string {
	length := func(n int64) int {
		if n == 0 {
			return 0
		}
		return max(1, int(n*barWidth/largest))
	}
	return strings.Repeat("█", length(solid)) + strings.Repeat("░", length(shaded))
}

// Duration formats a duration for people, rounded up to seconds.
func Duration(d time.Duration) string {
	seconds := int64((d + time.Second - 1) / time.Second)
	minutes, hours := seconds/60, seconds/3600
	switch {
	case seconds < 60:
		return fmt.Sprintf("%d s", seconds)
	case hours == 0:
		return fmt.Sprintf("%d min %d s", minutes, seconds%60)
	}
	return fmt.Sprintf("%d h %d min", hours, minutes%60)
}

// ParseDuration parses a duration in Go's notation, or in days, such as 90d.
func ParseDuration(s string) (time.Duration, error) {
	days, ok := strings.CutSuffix(s, "d")
	if !ok {
		return time.ParseDuration(s)
	}
	n, err := strconv.Atoi(days)
	if err != nil || n < 0 || n > 100*366 {
		return 0, errors.New("not a number of days")
	}
	return time.Duration(n) * 24 * time.Hour, nil
}

// ParseSize parses a number of bytes, such as 500MiB.
func ParseSize(s string) (int64, error) {
	for shift, unit := range []string{"B", "KiB", "MiB", "GiB", "TiB"} {
		number, ok := strings.CutSuffix(s, unit)
		n, err := strconv.ParseInt(number, 10, 64)
		if ok && err == nil && n >= 0 && n <= math.MaxInt64>>(10*shift) {
			return n << (10 * shift), nil
		}
	}
	return 0, errors.New("not a size")
}

const never = "never"

// DateTime formats a time for people, in UTC. The zero time is "never".
func DateTime(t time.Time) string {
	if t.IsZero() {
		return never
	}
	return t.UTC().Format(time.DateTime)
}

// relativeTime is how far a time is from now, in the largest unit.
func relativeTime(t, now time.Time) string {
	if t.IsZero() {
		return never
	}
	d := t.Sub(now)
	text := ""
	switch distance := d.Abs(); {
	case distance < time.Minute:
		text = fmt.Sprintf("%d s", distance/time.Second)
	case distance < time.Hour:
		text = fmt.Sprintf("%d min", distance/time.Minute)
	case distance < 48*time.Hour:
		text = fmt.Sprintf("%d h", distance/time.Hour)
	default:
		text = fmt.Sprintf("%d d", distance/(24*time.Hour))
	}
	if d > 0 {
		return "in " + text
	}
	return text + " ago"
}
