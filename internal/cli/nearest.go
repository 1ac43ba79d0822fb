package cli

// nearest returns the candidate that a mistyped word is most likely meant to be: the
// one with the fewest edits, of which a word of n letters may have n/3, and at least
// one. It returns "" if there is none. Of several, it returns the first.
func nearest(word string, candidates []string) string {
	found, least := "", max(1, len([]rune(word))/3)+1
	for _, c := range candidates {
		if d := editDistance([]rune(word), []rune(c)); d < least {
			found, least = c, d
		}
	}
	return found
}

// editDistance is the number of letters to insert, remove or replace, or neighbours to
// swap, that turns one word into the other.
func editDistance(a, b []rune) int {
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
			replace := rows[i][j]
			if a[i] != b[j] {
				replace++
			}
			rows[i+1][j+1] = min(replace, rows[i][j+1]+1, rows[i+1][j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				rows[i+1][j+1] = min(rows[i+1][j+1], rows[i-1][j-1]+1)
			}
		}
	}
	return rows[len(a)][len(b)]
}
