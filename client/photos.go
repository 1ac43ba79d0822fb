package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"strings"
	"time"

	"animalstore"
)

// Image is an image of a photo.
type Image struct {
	ContentType string // image/jpeg or image/png
	Data        []byte
}

// uploadTime is how long the service allows an upload to take.
const uploadTime = 60 * time.Second

// AddPhoto adds a photo to a pet. The picture is a JPEG, PNG or WebP file of at most
// animalstore.MaxUpload bytes. The service keeps a smaller one without metadata. The photo
// is added only once, even if the call is retried: see [IdempotencyKey].
func (c *Client) AddPhoto(ctx context.Context, petID int64, picture io.Reader, options ...CallOption) (animalstore.Photo, error) {
	content, err := io.ReadAll(io.LimitReader(picture, animalstore.MaxUpload+1))
	if err != nil {
		return animalstore.Photo{}, fmt.Errorf("addPhoto: read the picture: %w", err)
	}
	if len(content) > animalstore.MaxUpload {
		err := animalstore.Errorf(animalstore.PayloadTooLarge, "the picture must have at most %d bytes: make it smaller", animalstore.MaxUpload)
		return animalstore.Photo{}, fmt.Errorf("addPhoto: %w", err)
	}
	op := operation{
		name: "addPhoto", method: http.MethodPost, path: petPath(petID) + "/photos",
		picture: content, repeat: replayed, extraTime: uploadTime,
	}
	return receive(ctx, c, op, options, isPhoto)
}

// ListPhotos lists the photos of pets, oldest first. Photos that exist during the whole
// listing are listed exactly once; photos added during it may be listed too.
func (c *Client) ListPhotos(ctx context.Context, q animalstore.PhotoQuery, options ...CallOption) iter.Seq2[animalstore.Photo, error] {
	return list(ctx, c, "listPhotos", "/photos", q.Values(), options, isPhoto)
}

// GetPhoto returns one photo, without its image.
func (c *Client) GetPhoto(ctx context.Context, id int64, options ...CallOption) (animalstore.Photo, error) {
	op := operation{name: "getPhoto", method: http.MethodGet, path: photoPath(id)}
	return receive(ctx, c, op, options, isPhoto)
}

// GetImage returns the image of a photo. It never changes.
func (c *Client) GetImage(ctx context.Context, id int64, options ...CallOption) (Image, error) {
	return c.getImage(ctx, "getImage", photoPath(id)+"/image", options)
}

// GetThumbnail returns a small image of a photo, of at most 320 pixels on its long side. It
// never changes.
func (c *Client) GetThumbnail(ctx context.Context, id int64, options ...CallOption) (Image, error) {
	return c.getImage(ctx, "getThumbnail", photoPath(id)+"/thumbnail", options)
}

func (c *Client) getImage(ctx context.Context, name, path string, options []CallOption) (Image, error) {
	var image Image
	op := operation{name: name, method: http.MethodGet, path: path, image: true}
	_, err := c.do(ctx, op, options, func(contentType string, data []byte) (bool, error) {
		if !strings.HasPrefix(contentType, "image/") {
			return false, fmt.Errorf("the type is %q, not an image: is the base URL right?", contentType)
		}
		if len(data) == 0 {
			return true, errors.New("the image is empty")
		}
		image = Image{contentType, data}
		return false, nil
	})
	return image, err
}

// DeletePhoto removes a photo. If an attempt was lost and the next one finds the photo
// gone, that counts as success.
func (c *Client) DeletePhoto(ctx context.Context, id int64, options ...CallOption) error {
	op := operation{name: "deletePhoto", method: http.MethodDelete, path: photoPath(id), conditional: true}
	return c.receiveNothing(ctx, op, options)
}

func photoPath(id int64) string { return fmt.Sprintf("/photos/%d", id) }

func isPhoto(p *animalstore.Photo) bool { return p.ID > 0 && p.PetID > 0 && p.ContentType != "" }
