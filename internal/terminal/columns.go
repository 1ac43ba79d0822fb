package terminal

import (
	"fmt"
	"strings"
)

// Name is how a person chooses the column: its title in lower case, without a unit
// and with hyphens instead of spaces.
func (c *Column[T]) Name() string {
	name, _, _ := strings.Cut(c.Title, " (")
	return strings.ReplaceAll(strings.ToLower(name), " ", "-")
}

// ColumnNames returns the names of columns.
func ColumnNames[T any](columns []Column[T]) []string {
	names := make([]string, len(columns))
	for i := range columns {
		names[i] = columns[i].Name()
	}
	return names
}

// Choose returns the named columns, in the order of the names. They are shown even on
// the narrowest screen.
func Choose[T any](columns []Column[T], names []string) ([]Column[T], error) {
	var chosen []Column[T]
	for _, name := range names {
		found := false
		for _, c := range columns {
			if c.Name() == strings.ToLower(strings.TrimSpace(name)) {
				c.Drop, found = 0, true
				chosen = append(chosen, c)
			}
		}
		if !found {
			return nil, fmt.Errorf("there is no column %q: the columns are %s", Visible(name), strings.Join(ColumnNames(columns), ", "))
		}
	}
	return chosen, nil
}
