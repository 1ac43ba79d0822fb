package photo

import (
	"image"
	"math/rand/v2"
	"testing"
)

// TestHeavyThumbnails: a thumbnail of pure noise is as light as any other, and not too small
// to be looked at.
func TestHeavyThumbnails(t *testing.T) {
	for _, c := range []struct {
		name    string
		side    int
		alpha   bool
		atLeast int // pixels
	}{{"noise", 320, false, 200}, {"transparent noise", 320, true, 64}} {
		img := image.NewRGBA(image.Rect(0, 0, c.side, c.side))
		random := rand.New(rand.NewPCG(1, 2))
		for i := range img.Pix {
			img.Pix[i] = uint8(random.Uint32())
			if i%4 == 3 && !c.alpha {
				img.Pix[i] = 255
			} else if c.alpha && i%4 == 3 { // no channel may be above it
				img.Pix[i] = max(img.Pix[i-3], img.Pix[i-2], img.Pix[i-1])
			}
		}
		p := FromImage(img)
		got := decoded(t, p.ContentType, p.Thumbnail).Bounds().Dx()
		if len(p.Thumbnail) > 20<<10 || got < c.atLeast {
			t.Errorf("%s: got %d bytes for %d pixels, want at most 20 KiB for at least %d", c.name, len(p.Thumbnail), got, c.atLeast)
		}
	}
}
