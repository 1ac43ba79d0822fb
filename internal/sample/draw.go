package sample

import (
	"image"
	"image/color"
	"iter"
	"math"
	"math/rand/v2"
)

// Photos returns the photos of a batch: ids of pets, each with a function that draws it.
// The same store has the same pictures.
func (b Batch) Photos() iter.Seq2[int64, func() *image.RGBA] {
	return func(yield func(int64, func() *image.RGBA) bool) {
		for _, pet := range b.Pets[int64(len(b.Pets))-b.photos:] {
			random := rand.New(rand.NewPCG(b.seed, uint64(b.before+pet.ID)))
			if !yield(pet.ID, func() *image.RGBA { return drawFace(random) }) {
				return
			}
		}
	}
}

// The size of a picture.
const drawnWidth, drawnHeight = 480, 360

// drawFace draws the face of an animal: a head with ears, eyes and a nose, in random
// colours and proportions.
func drawFace(random *rand.Rand) *image.RGBA {
	img := image.NewRGBA(image.Rect(0, 0, drawnWidth, drawnHeight))
	hue := random.Float64()
	between := func(low, high float64) float64 { return low + random.Float64()*(high-low) }
	sky, ground := hsl(hue, 0.35, 0.85), hsl(hue+0.3, 0.35, 0.6)
	horizon := int(between(0.6, 0.8) * drawnHeight)
	for y := range drawnHeight {
		for x := range drawnWidth {
			if y < horizon {
				img.SetRGBA(x, y, sky)
			} else {
				img.SetRGBA(x, y, ground)
			}
		}
	}
	tone, shade := between(0.03, 0.12), between(0.25, 0.7)
	fur, dark := hsl(tone, 0.45, shade), hsl(tone, 0.45, shade*0.7)
	x, y := between(0.4, 0.6)*drawnWidth, between(0.5, 0.6)*drawnHeight
	w, h := between(80, 120), between(80, 115)
	earW, earH, earUp := between(20, 38), between(30, 80), between(0.5, 1)
	for _, side := range []float64{-1, 1} {
		ellipse(img, x+side*w*0.7, y-h*earUp, earW, earH, dark)
	}
	ellipse(img, x, y, w, h, fur)
	ellipse(img, x, y+h*0.4, w*0.5, h*0.4, hsl(tone, 0.3, min(0.95, shade+0.2)))
	for _, side := range []float64{-1, 1} {
		ellipse(img, x+side*w*0.4, y-h*0.15, 13, 16, color.RGBA{255, 255, 255, 255})
		ellipse(img, x+side*w*0.4, y-h*0.12, 8, 11, color.RGBA{30, 25, 20, 255})
	}
	ellipse(img, x, y+h*0.25, 16, 11, color.RGBA{50, 35, 35, 255})
	return img
}

// ellipse fills an ellipse with these radii.
func ellipse(img *image.RGBA, x, y, w, h float64, c color.RGBA) {
	for py := max(0, int(y-h)); py <= min(drawnHeight-1, int(y+h)); py++ {
		for px := max(0, int(x-w)); px <= min(drawnWidth-1, int(x+w)); px++ {
			dx, dy := (float64(px)-x)/w, (float64(py)-y)/h
			if dx*dx+dy*dy <= 1 {
				img.SetRGBA(px, py, c)
			}
		}
	}
}

// hsl returns a colour by its hue, of which only the fraction counts, saturation and
// lightness, all from 0 to 1.
func hsl(hue, saturation, lightness float64) color.RGBA {
	chroma := (1 - math.Abs(2*lightness-1)) * saturation
	channel := func(offset float64) uint8 {
		_, k := math.Modf(hue + offset)
		distance := math.Abs(k*6 - 3) // 3 at the colour itself
		return uint8(255 * (lightness + chroma*(min(1, max(0, distance-1))-0.5)))
	}
	return color.RGBA{channel(0), channel(2.0 / 3), channel(1.0 / 3), 255}
}
