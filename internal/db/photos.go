package db

import (
	"context"
	"slices"

	"animalstore"
)

// Photos stores the photos of pets. A photo never changes, and it is removed with its pet.
type Photos interface {
	// AddPhoto adds a photo to a pet. It returns ErrNotFound if the pet doesn't exist, an
	// error with the code too_many_photos if the pet has animalstore.MaxPhotos, and one
	// with the code storage_full if all photos and thumbnails together would take more
	// than limit bytes. idempotency may be nil.
	AddPhoto(ctx context.Context, p NewPhoto, limit int64, idempotency *Idempotency) (photo animalstore.Photo, replayed bool, err error)

	// Photo returns one photo.
	Photo(ctx context.Context, id int64) (animalstore.Photo, error)

	// Photos returns photos in ascending order of id.
	Photos(ctx context.Context, q animalstore.PhotoQuery, page Page) ([]animalstore.Photo, error)

	// DeletePhoto removes a photo if check returns nil.
	DeletePhoto(ctx context.Context, id int64, check func(*animalstore.Photo) error) error

	// Image returns what is known about one of the images of a photo.
	Image(ctx context.Context, id int64, kind ImageKind) (Image, error)

	// ImagePart returns a part of an image: PartSize bytes from number * PartSize on, fewer
	// at the end of the image, and ErrNotFound after that.
	ImagePart(ctx context.Context, id int64, kind ImageKind, number int) ([]byte, error)
}

// NewPhoto is a photo to add.
type NewPhoto struct {
	PetID         int64
	ContentType   string
	Width, Height int
	Image         []byte
	Thumbnail     []byte
	At            animalstore.Time
}

// ImageKind is one of the images that are kept of a photo.
type ImageKind int64

// These values are stored.
const (
	FullImage ImageKind = iota
	Thumbnail
)

// Image describes an image.
type Image struct {
	ContentType string
	Bytes       int64
	CreatedAt   animalstore.Time
}

// PartSize is the size of the rows that images are split into, so that neither a reader
// nor a copy of the store needs the memory for a whole image.
const PartSize = 256 << 10

// What engines share about photos.

// Photo returns the photo that AddPhoto adds, without an id.
func (p *NewPhoto) Photo() animalstore.Photo {
	return animalstore.Photo{
		PetID: p.PetID, ContentType: p.ContentType, Width: p.Width, Height: p.Height, Bytes: int64(len(p.Image)), CreatedAt: p.At,
	}
}

// Stored returns how many bytes count towards the limit of all photos.
func (p *NewPhoto) Stored() int64 { return int64(len(p.Image) + len(p.Thumbnail)) }

// PhotoPart is a row of an image.
type PhotoPart struct {
	Kind   ImageKind
	Number int // from 0
	Data   []byte
}

// Parts returns the rows of both images.
func (p *NewPhoto) Parts() []PhotoPart {
	var all []PhotoPart
	for kind, data := range [][]byte{FullImage: p.Image, Thumbnail: p.Thumbnail} {
		number := 0
		for chunk := range slices.Chunk(data, PartSize) {
			all = append(all, PhotoPart{ImageKind(kind), number, chunk})
			number++
		}
	}
	return all
}

// CheckPhotoCount returns an error if a pet with this many photos can't have another one.
func CheckPhotoCount(photos int64) error {
	if photos < animalstore.MaxPhotos {
		return nil
	}
	return animalstore.Errorf(animalstore.TooManyPhotos, "this pet has %d photos, the maximum: remove one first", photos)
}

// CheckPhotosTotal returns an error if all photos of a store take too many bytes.
func CheckPhotosTotal(total, limit int64) error {
	if total <= limit {
		return nil
	}
	return animalstore.Errorf(animalstore.StorageFull, "no space left for photos: remove some, or ask the operator to raise the limit")
}

// PhotoColumns are read by [ScanPhoto].
const PhotoColumns = "id, pet_id, content_type, width, height, bytes, created_at"

// ScanPhoto scans a photo.
func ScanPhoto(row Row) (animalstore.Photo, error) {
	var photo animalstore.Photo
	var created int64
	err := row.Scan(&photo.ID, &photo.PetID, &photo.ContentType, &photo.Width, &photo.Height, &photo.Bytes, &created)
	photo.CreatedAt = animalstore.AtMilli(created)
	return photo, err
}

// ScanImage scans the type, the size and the time of an image.
func ScanImage(row Row) (Image, error) {
	var image Image
	var created int64
	err := row.Scan(&image.ContentType, &image.Bytes, &created)
	image.CreatedAt = animalstore.AtMilli(created)
	return image, err
}
