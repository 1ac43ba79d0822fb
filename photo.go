package animalstore

const (
	MaxPhotos = 10       // of a pet
	MaxUpload = 10 << 20 // bytes of a picture that is sent
)

// Photo is a picture of a pet, as the store keeps it: upright, of a limited size, and
// without the metadata of the file it was made from. It never changes.
type Photo struct {
	ID          int64  `json:"id"`
	PetID       int64  `json:"petId"`
	ContentType string `json:"contentType"` // image/jpeg, or image/png if it has transparency
	Width       int    `json:"width"`
	Height      int    `json:"height"`
	Bytes       int64  `json:"bytes"` // of the image, without its thumbnail
	CreatedAt   Time   `json:"createdAt"`
}
