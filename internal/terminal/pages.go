package terminal

import "iter"

// Pages says how much to print of a list that is read in pages.
type Pages struct {
	Limit   int // the maximum number of entries, unless All is set
	All     bool
	MaxSize int    // of a page
	Entries string // what entries are called, such as "pets"
	ForMore string // how to get more entries
}

// PrintPages prints a list with as few requests as possible. list is called once, with
// the page size to request. On a terminal a note says if there are no entries, or if
// there are more.
func PrintPages[T any](p *Printer, pages Pages, list func(pageSize int) iter.Seq2[T, error], columns []Column[T]) error {
	hints := p.Screen.Terminal && !p.JSON
	// Reading one extra entry shows whether there are more. It isn't done if it would
	// need another request.
	read := pages.Limit
	if hints && pages.Limit%pages.MaxSize != 0 {
		read++
	}
	pageSize := min(read, pages.MaxSize)
	if pages.All {
		pageSize = pages.MaxSize
	}
	printed, more := 0, "may be"
	bounded := func(yield func(T, error) bool) {
		for entry, err := range list(pageSize) {
			if !pages.All && printed == pages.Limit {
				more = "are"
				return
			}
			if !yield(entry, err) {
				return
			}
			if printed++; !pages.All && printed == read {
				return
			}
		}
		more = ""
	}
	err := PrintList(p, bounded, columns)
	switch {
	case err != nil || !hints:
	case printed == 0:
		p.Note("No %s found.", pages.Entries)
	case more != "":
		p.Note("There %s more %s: %s.", more, pages.Entries, pages.ForMore)
	}
	return err
}
