package e2e

import (
	"errors"
	"os"
	"testing"

	"animalstore/internal/testenv"
)

// TestSlowClients: a client that never finishes its request can't hold its connection
// forever.
func TestSlowClients(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	s := start(t)
	whole := message("POST", "/v1/pets", s.ownerKey(), newPetBody("slow", 1, "sold"))
	for name, sent := range map[string]string{
		"silent":           "",
		"half of a header": whole[:40],
		"half of a body":   whole[:len(whole)-10],
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := dial(t, s)
			c.send(t, sent)
			// A body that doesn't arrive in time is answered first.
			if a, closes, err := c.receive(); err == nil && (a.status != 400 || !closes) {
				t.Errorf("got %d %s, want 400 or nothing, and the end of the connection", a.status, a.body)
			} else if errors.Is(err, os.ErrDeadlineExceeded) {
				t.Error("the connection stays open")
			}
		})
	}
}
