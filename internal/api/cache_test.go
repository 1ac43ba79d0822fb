package api

import "testing"

func TestNoPageCache(t *testing.T) {
	for _, disabled := range []bool{false, true} {
		c := newCache(disabled)
		c.put("/v1/pets", 2, newPage(true, "", []byte("[]\n")))
		if got := c.get("/v1/pets", 2); (got == nil) != disabled {
			t.Errorf("disabled %t: got page %v", disabled, got)
		}
	}
}
