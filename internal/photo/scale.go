package photo

import (
	"image"

	"golang.org/x/image/draw"
)

// halve returns a picture as RGBA, halved until it is at most twice as large as a side of
// maxSide. At exactly half the size, the fast scaler uses every pixel and is as good as
// any other.
func halve(img image.Image, maxSide int) *image.RGBA {
	for {
		size := img.Bounds().Size()
		if max(size.X, size.Y) <= 2*maxSide {
			return toRGBA(img)
		}
		half := image.NewRGBA(image.Rect(0, 0, (size.X+1)/2, (size.Y+1)/2))
		draw.ApproxBiLinear.Scale(half, half.Rect, img, img.Bounds(), draw.Src, nil)
		img = half
	}
}

// toRGBA returns img itself if it is RGBA already and begins at 0, 0.
func toRGBA(img image.Image) *image.RGBA {
	if rgba, ok := img.(*image.RGBA); ok && rgba.Rect.Min == (image.Point{}) {
		return rgba
	}
	rgba := image.NewRGBA(image.Rectangle{Max: img.Bounds().Size()})
	draw.Draw(rgba, rgba.Rect, img, img.Bounds().Min, draw.Src)
	return rgba
}

// shrink returns a picture of at most maxSide on its long side. It never enlarges.
func shrink(img *image.RGBA, maxSide int) *image.RGBA {
	w, h := img.Rect.Dx(), img.Rect.Dy()
	long := max(w, h)
	if long <= maxSide {
		return img
	}
	round := func(side int) int { return max(1, (side*maxSide+long/2)/long) }
	small := image.NewRGBA(image.Rect(0, 0, round(w), round(h)))
	draw.CatmullRom.Scale(small, small.Rect, img, img.Rect, draw.Src, nil)
	return small
}
