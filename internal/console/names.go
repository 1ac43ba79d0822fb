package console

import "unicode"

// blank are letters and symbols that look like a space and aren't one.
var blank = &unicode.RangeTable{R16: []unicode.Range16{{Lo: 0x2800, Hi: 0x2800, Stride: 1}}} // a braille pattern without dots

// visible reports whether a reader can see anything of a name. The API accepts names that
// consist of joiners, marks of direction and the like.
func visible(name string) bool {
	for _, c := range name {
		if unicode.In(c, unicode.L, unicode.M, unicode.N, unicode.P, unicode.S) &&
			!unicode.In(c, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector, blank) {
			return true
		}
	}
	return false
}
