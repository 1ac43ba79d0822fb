package console

import (
	"fmt"
	"maps"
	"net/http"

	"animalstore"
	"animalstore/internal/inprocess"
)

// gallery is the photos of a pet, and the result of adding some.
type gallery struct {
	Photos  []galleryPhoto // oldest first
	Once    string
	Added   int
	Refused []refusedFile
}

// Full reports whether the pet can have no more photos.
func (g gallery) Full() bool { return len(g.Photos) >= animalstore.MaxPhotos }

// Left is how many more photos the pet can have.
func (g gallery) Left() int { return animalstore.MaxPhotos - len(g.Photos) }

// MaxSize is how many bytes of files can be sent at once.
func (g gallery) MaxSize() int64 { return maxFileBytes }

type galleryPhoto struct {
	animalstore.Photo
	Number int
	Image  string // its path
	Small  string // the path of the thumbnail
	Alt    string
}

// readGallery adds the photos of a pet to the result of adding some.
func (v *visit) readGallery(pet animalstore.Pet, sent gallery) (gallery, error) {
	photos, _, err := readRows(v, matching(v.api.ListPhotos, animalstore.PhotoQuery{PetIDs: []int64{pet.ID}}))
	if err != nil {
		return sent, err
	}
	for i, p := range photos {
		alt := fmt.Sprintf("Photo %d of %s", i+1, shorten(pet.Name, labelLength))
		sent.Photos = append(sent.Photos, galleryPhoto{p, i + 1, imagePath(p), thumbnailPath(p), alt})
	}
	sent.Once = newOnce()
	return sent, nil
}

// removePhoto serves POST /console/pets/{id}/photos/{photo}/remove.
func (v *visit) removePhoto() error {
	photo, err := v.pathID("photo")
	if err != nil {
		return err
	}
	err = v.api.DeletePhoto(v.r.Context(), photo)
	if err != nil && codeOf(err) != animalstore.PhotoNotFound { // the second time
		return err
	}
	return v.goTo(v.petPath(v.id), "photo-removed")
}

// petPath is the page of a pet, or one that the key may see.
func (v *visit) petPath(id int64) string {
	if !v.may(petsRead) {
		return "/console/pets/new"
	}
	return petPath(id)
}

// showImage serves GET /console/photos/{id}/image.
func (v *visit) showImage() error { return v.serveImage("image") }

// showThumbnail serves GET /console/photos/{id}/thumbnail.
func (v *visit) showThumbnail() error { return v.serveImage("thumbnail") }

// serveImage sends an image as the API does, which doesn't charge it. Errors are pages.
func (v *visit) serveImage(kind string) error {
	in, err := http.NewRequestWithContext(v.r.Context(), v.r.Method, fmt.Sprintf("http://console/v1/photos/%d/%s", v.id, kind), nil)
	if err != nil {
		return err
	}
	if tags := v.r.Header["If-None-Match"]; tags != nil {
		in.Header["If-None-Match"] = tags
	}
	w := &imageWriter{Recorder: inprocess.NewRecorder(v.w), to: v.w}
	v.serveAPI(w, v.transport(nil).Incoming(in))
	if w.sent {
		return nil
	}
	return refusal(w.Response(in), v.c.Now())
}

// imageWriter passes an image on as it comes. Any other response is recorded.
type imageWriter struct {
	*inprocess.Recorder
	to   http.ResponseWriter
	sent bool // the response is passed on
}

func (w *imageWriter) WriteHeader(status int) {
	if status != http.StatusOK && status != http.StatusNotModified {
		w.Recorder.WriteHeader(status)
		return
	}
	w.sent = true
	maps.Copy(w.to.Header(), w.Header())
	w.to.WriteHeader(status)
}

func (w *imageWriter) Write(b []byte) (int, error) {
	if w.sent {
		return w.to.Write(b)
	}
	return w.Recorder.Write(b)
}
