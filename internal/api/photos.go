package api

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// addPhoto serves POST /v1/pets/{petId}/photos. Its slot is released at the end of the
// request, because the body stays in memory until then.
func (s *Server) addPhoto(w http.ResponseWriter, r *request) error {
	r.limitTime(uploadTimeout)
	allowUpload(w, r) // also while it waits for its slot
	end, err := s.uploads.begin(r.Context())
	if err != nil {
		return err
	}
	defer end()
	header, err := readUpload(w, r)
	if err != nil {
		return err
	}
	petID, err := petKind.pathID(r)
	if err != nil {
		return err
	}
	// The pet isn't in the body, so it is part of what makes two requests the same.
	idempotency, err := s.idempotency(r, "addPhoto "+strconv.FormatInt(petID, 10))
	if err != nil {
		return err
	}
	if err := s.checkPet(r, petID, idempotency); err != nil {
		return err
	}
	picture, err := s.uploads.process(r, header)
	if err != nil {
		return err
	}
	added, replayed, err := s.DB.AddPhoto(r.Context(), db.NewPhoto{
		PetID: petID, ContentType: picture.ContentType, Width: picture.Width, Height: picture.Height,
		Image: picture.Image, Thumbnail: picture.Thumbnail, At: animalstore.At(s.Now()),
	}, s.PhotosLimit, idempotency)
	if err != nil {
		return petKind.notFound(err)
	}
	setReplayed(w, replayed)
	setLocation(w, "/v1/photos", added.ID)
	return writeResource(w, r, http.StatusCreated, added)
}

// checkPet returns an error if there is no such pet, before its picture is decoded. A
// retried upload gets its first response even if the pet is gone.
func (s *Server) checkPet(r *request, id int64, idempotency *db.Idempotency) error {
	_, err := s.DB.Pet(r.Context(), id)
	if idempotency != nil && errors.Is(err, db.ErrNotFound) {
		return nil
	}
	return petKind.notFound(err)
}

// listPhotos serves GET /v1/photos.
func (s *Server) listPhotos(w http.ResponseWriter, r *request) error {
	list := func(ctx context.Context, q animalstore.PhotoQuery, page db.Page) ([]animalstore.Photo, error) {
		if q.PetIDs == nil {
			return nil, animalstore.Errorf(animalstore.InvalidParameter, "petId is required: name 1 to 100 pets, separated by commas")
		}
		return s.DB.Photos(ctx, q, page)
	}
	return serveList(w, r, "/v1/photos", animalstore.ParsePhotoQuery, list, func(p *animalstore.Photo) int64 { return p.ID })
}

// getPhoto serves GET /v1/photos/{photoId}.
func (s *Server) getPhoto(w http.ResponseWriter, r *request) error {
	return serveAtPath(w, r, &photoKind, s.DB.Photo)
}

// deletePhoto serves DELETE /v1/photos/{photoId}.
func (s *Server) deletePhoto(w http.ResponseWriter, r *request) error {
	return deleteAtPath(w, r, &photoKind, func(ctx context.Context, id int64) error {
		return s.DB.DeletePhoto(ctx, id, func(p *animalstore.Photo) error { return r.checkIfMatch(etagOf(encode(p))) })
	})
}

// getImage serves GET /v1/photos/{photoId}/image.
func (s *Server) getImage(w http.ResponseWriter, r *request) error {
	return s.writeImage(w, r, db.FullImage)
}

// getThumbnail serves GET /v1/photos/{photoId}/thumbnail.
func (s *Server) getThumbnail(w http.ResponseWriter, r *request) error {
	return s.writeImage(w, r, db.Thumbnail)
}

// IsImage reports whether a path is that of an image of a photo.
func IsImage(path string) bool {
	return strings.HasPrefix(path, "/v1/photos/") && (strings.HasSuffix(path, "/image") || strings.HasSuffix(path, "/thumbnail"))
}

// partTimeout is how long a client may take to receive a part of an image.
const partTimeout = 15 * time.Second

// writeImage writes one of the images of a photo, part by part, so that a slow client
// holds neither the memory for all of it nor a database connection.
func (s *Server) writeImage(w http.ResponseWriter, r *request, kind db.ImageKind) error {
	id, err := photoKind.pathID(r)
	if err != nil {
		return err
	}
	image, err := s.DB.Image(r.Context(), id, kind)
	if err != nil {
		return photoKind.notFound(err)
	}
	// A store restored from a backup may assign an id again, but not at the same time.
	tag := etagOf(fmt.Appendf(nil, "%d %d %d %d", id, kind, image.CreatedAt.Milli(), image.Bytes))
	if err := r.checkIfMatch(tag); err != nil {
		return err
	}
	var data []byte
	hasBody := r.Method != http.MethodHead && !r.alreadyHas(tag)
	if hasBody { // read before the headers, so that a failure is still an error response
		if data, err = s.DB.ImagePart(r.Context(), id, kind, 0); err != nil {
			return photoKind.notFound(err)
		}
	}
	setImageHeaders(w, tag)
	if r.alreadyHas(tag) {
		w.WriteHeader(http.StatusNotModified)
		return nil
	}
	setHeader(w, "Content-Type", image.ContentType)
	setHeader(w, "Content-Length", strconv.FormatInt(image.Bytes, 10))
	w.WriteHeader(http.StatusOK)
	if !hasBody {
		return nil
	}
	control := http.NewResponseController(w)
	for part := 1; ; part++ {
		control.SetWriteDeadline(time.Now().Add(partTimeout)) // for the console, of the browser's connection
		if _, err := w.Write(data); err != nil || int64(part)*db.PartSize >= image.Bytes {
			return nil // the client is gone, or has it all
		}
		r.restartClock()
		if data, err = s.DB.ImagePart(r.Context(), id, kind, part); err != nil {
			s.Log.Warn("image cut off", "request_id", r.id, "photo", id, "err", err)
			panic(http.ErrAbortHandler) // so that it isn't mistaken for a complete one
		}
	}
}

// setImageHeaders makes clients keep an image for an hour, and show it as nothing but an
// image. It never changes, but a store restored from a backup may give its id to another.
func setImageHeaders(w http.ResponseWriter, tag string) {
	setHeader(w, "ETag", tag)
	setHeader(w, "Cache-Control", "private, max-age=3600")
	setHeader(w, "Content-Disposition", "inline")
	setHeader(w, "Content-Security-Policy", "default-src 'none'; sandbox")
}
