package photo

import "image"

// MaxThumbnailBytes is the maximum size of a thumbnail, so that a page with 20 of them stays light.
// At the quality of images, those of most photographs are smaller, but noise takes three
// times as much.
const MaxThumbnailBytes = 20 << 10

// thumbnailQualities are the JPEG qualities to try before making the thumbnail smaller.
var thumbnailQualities = []int{quality, 65, 45}

// thumbnail returns the largest and best thumbnail that isn't too heavy. The loop
// ends: at 56 pixels even noise fits.
func thumbnail(contentType string, img *image.RGBA) []byte {
	for side := MaxThumbnailSide; ; side = side * 3 / 4 {
		img = shrink(halve(img, side), side)
		for _, q := range thumbnailQualities {
			if data := encodeAs(contentType, img, q); len(data) <= MaxThumbnailBytes {
				return data
			}
			if contentType == "image/png" { // it has no quality
				break
			}
		}
	}
}
