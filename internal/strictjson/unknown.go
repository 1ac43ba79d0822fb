package strictjson

import (
	"encoding/json"
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// argumentName is what an unknown name must look like to be repeated in an error. A secret
// that was sent as a name doesn't.
var argumentName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,23}$`)

// checkNames returns an error if values has a name that isn't one of names. path is where
// values is.
func checkNames(values map[string]json.RawMessage, path string, names []string) error {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		if !slices.Contains(names, name) {
			return unknownName(path, name, names)
		}
	}
	return nil
}

func unknownName(path, name string, names []string) error {
	message := "unknown argument"
	if argumentName.MatchString(name) {
		message += " " + path + name
		if near := nearest(name, names); near != "" {
			message += " (did you mean " + path + near + "?)"
		}
	}
	if len(names) == 0 {
		return errors.New(message + ": there are none")
	}
	if path != "" {
		return errors.New(message + ": the fields are " + strings.Join(names, ", "))
	}
	return errors.New(message + ": the arguments are " + strings.Join(names, ", "))
}

// nearest returns the name that was probably meant, or "".
func nearest(name string, names []string) string {
	const most = 2 // differences
	best, nearest := most+1, ""
	for _, candidate := range names {
		d := distance(plain(name), plain(candidate))
		if d < best && d < len(candidate)/2 {
			best, nearest = d, candidate
		}
	}
	return nearest
}

// plain makes pet_id and petId equal.
func plain(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(name))
}

// distance is how many bytes must be added, removed, replaced, or swapped with the next one to
// make a into b.
func distance(a, b string) int {
	rows := make([][]int, len(a)+1)
	for i := range rows {
		rows[i] = make([]int, len(b)+1)
		rows[i][0] = i
	}
	for j := range b {
		rows[0][j+1] = j + 1
	}
	for i := range a {
		for j := range b {
			replaced := rows[i][j]
			if a[i] != b[j] {
				replaced++
			}
			rows[i+1][j+1] = min(rows[i][j+1]+1, rows[i+1][j]+1, replaced)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				rows[i+1][j+1] = min(rows[i+1][j+1], rows[i-1][j-1]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
