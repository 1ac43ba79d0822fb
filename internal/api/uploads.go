package api

import (
	"bytes"
	"context"
	"io"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"animalstore"
	"animalstore/internal/fair"
	"animalstore/internal/photo"
)

const (
	// uploadTimeout is how long an upload may take, including its wait for a turn.
	uploadTimeout = 60 * time.Second

	// Uploads in memory: all of them, and those of one key. The others wait before they
	// are received, so they take no memory.
	maxUploads       = 8
	maxUploadsPerKey = 2
)

// uploads limits what pictures take: memory while they are received, and processors while
// they are decoded. Keys take turns at both.
type uploads struct {
	all     *fair.Turns
	decoder *fair.Turns // other requests need the other processors

	mu      sync.Mutex
	byKey   map[int64]*keyUploads // those with uploads in progress
	leaving int                   // uploads that were cut off and still have their turn
}

// keyUploads are the uploads of a key.
type keyUploads struct {
	turns *fair.Turns
	count int // in progress or waiting
}

func newUploads() *uploads {
	return &uploads{all: fair.NewTurns(maxUploads, 0), decoder: fair.NewTurns(1, 0), byKey: map[int64]*keyUploads{}}
}

// begin waits for a turn to upload. If it returns no error, the caller must call end.
func (u *uploads) begin(ctx context.Context, key int64) (end func(), err error) {
	own := u.join(key)
	if err := own.turns.Take(ctx, key); err != nil {
		u.leave(key)
		return nil, err
	}
	if err := u.all.Take(ctx, key); err != nil {
		own.turns.Done(key)
		u.leave(key)
		return nil, err
	}
	return func() {
		u.all.Done(key)
		own.turns.Done(key)
		u.leave(key)
	}, nil
}

func (u *uploads) join(key int64) *keyUploads {
	u.mu.Lock()
	defer u.mu.Unlock()
	own := u.byKey[key]
	if own == nil {
		own = &keyUploads{turns: fair.NewTurns(maxUploadsPerKey, 0)}
		u.byKey[key] = own
	}
	own.count++
	return own
}

func (u *uploads) leave(key int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.byKey[key].count--; u.byKey[key].count == 0 {
		delete(u.byKey, key)
	}
}

// process turns an upload into the picture to keep. What its header rules out doesn't wait
// for a turn.
func (u *uploads) process(ctx context.Context, key int64, data []byte, contentType string) (*photo.Picture, error) {
	if _, err := photo.Inspect(data, contentType); err != nil {
		return nil, err
	}
	if err := u.decoder.Take(ctx, key); err != nil {
		return nil, err
	}
	defer u.decoder.Done(key)
	return photo.Process(ctx, data, contentType)
}

// read reads a picture into the request's body and returns its type. The handler's
// time begins when all of it is there.
func (u *uploads) read(w http.ResponseWriter, r *request) (contentType string, err error) {
	if r.ContentLength > animalstore.MaxUpload {
		return "", uploadTooLarge()
	}
	began := time.Now()
	control := http.NewResponseController(w) // the console passes its deadlines on to the browser's connection
	control.SetReadDeadline(began.Add(uploadTimeout))
	control.SetWriteDeadline(began.Add(uploadTimeout + handlerTimeout + partTimeout))
	contentType, typeErr := uploadType(r.Header)
	var body bytes.Buffer
	target := io.Writer(&body)
	if typeErr != nil {
		target = io.Discard // only its size matters
	} else if r.ContentLength > 0 {
		body.Grow(int(r.ContentLength))
	}
	arriving := u.watch(r.Body, func() { control.SetReadDeadline(began) })
	n, err := io.Copy(target, io.LimitReader(arriving, animalstore.MaxUpload+1))
	tooSlow := u.unwatch(arriving)
	r.waited += time.Since(began)
	switch {
	case tooSlow:
		return "", animalstore.Errorf(animalstore.Overloaded, "the picture arrived too slowly while others were waiting to upload: try again in a moment")
	case err != nil:
		return "", unreadable(r, err, animalstore.InvalidImage)
	case n > animalstore.MaxUpload:
		return "", uploadTooLarge()
	case typeErr != nil:
		return "", typeErr
	}
	r.limitTime(handlerTimeout)
	r.body = body.Bytes()
	return contentType, nil
}

func uploadTooLarge() error {
	return animalstore.Errorf(animalstore.PayloadTooLarge, "the picture must have at most %d bytes: make it smaller", animalstore.MaxUpload)
}

// uploadType returns the media type of a picture.
func uploadType(h http.Header) (string, error) {
	if isCoded(h) {
		return "", animalstore.Errorf(animalstore.UnsupportedMediaType, "Content-Encoding is not supported: send the picture as it is")
	}
	types := h["Content-Type"]
	if len(types) == 1 {
		if mediaType, _, err := mime.ParseMediaType(types[0]); err == nil && slices.Contains(photo.ContentTypes, mediaType) {
			return mediaType, nil
		}
	}
	return "", animalstore.Errorf(animalstore.UnsupportedMediaType, "the body must be a picture: send it with Content-Type: %s", strings.Join(photo.ContentTypes, " or "))
}
