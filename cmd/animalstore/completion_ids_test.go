package main

import (
	"slices"
	"testing"
)

func TestIDsBeginning(t *testing.T) {
	for digits, want := range map[string][]int64{"": nil, "x": nil, "-1": nil, "0": nil, "7": {7, 70, 71, 72}, "12": {12, 120, 121, 122}} {
		got := idsBeginning(digits)
		if want == nil && got != nil || want != nil && (len(got) != maxPage || !slices.Equal(got[:4], want)) {
			t.Errorf("%q: got %v, want %d that begin with %v", digits, got, maxPage, want)
		}
	}
	if got := idsBeginning("9223372036854775807"); len(got) > 1 {
		t.Errorf("the highest id: got %v, want no other", got)
	}
}
