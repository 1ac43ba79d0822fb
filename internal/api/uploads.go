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
	// uploadTimeout is how long an upload may wait for a slot, and then take to arrive.
	uploadTimeout = 60 * time.Second
	// decoderWait is how long an upload that has arrived may wait for its turn to be
	// decoded. The handler's time begins after that.
	decoderWait = 30 * time.Second

	// Uploads in memory: all of them, and those of one key. The others wait before they
	// are received, so they take no memory.
	maxUploads       = 8
	maxUploadsPerKey = 2
)

// uploads limits what pictures take: memory while they are received, and processors while
// they are decoded. Keys take turns at both.
type uploads struct {
	all     *fair.Semaphore
	decoder *fair.Semaphore // one slot: other requests need the other processors

	mu    sync.Mutex
	byKey map[fair.Caller]*keyUploads // of keys with uploads in progress or waiting
}

// keyUploads limits the uploads of one key.
type keyUploads struct {
	slots *fair.Semaphore
	count int // of uploads in progress or waiting
}

func newUploads() *uploads {
	return &uploads{
		all:     fair.NewSemaphore(maxUploads, 0),
		decoder: fair.NewSemaphore(1, 0),
		byKey:   map[fair.Caller]*keyUploads{},
	}
}

// begin waits for a slot to upload. If it returns no error, the caller must call end.
func (u *uploads) begin(ctx context.Context) (end func(), err error) {
	key := fair.CallerOf(ctx)
	own := u.add(key)
	if err := own.slots.Acquire(ctx, key); err != nil {
		u.remove(key)
		return nil, err
	}
	if err := u.all.Acquire(ctx, key); err != nil {
		own.slots.Release(key)
		u.remove(key)
		return nil, err
	}
	return func() {
		u.all.Release(key)
		own.slots.Release(key)
		u.remove(key)
	}, nil
}

// add counts an upload of a key.
func (u *uploads) add(key fair.Caller) *keyUploads {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.byKey[key] == nil {
		u.byKey[key] = &keyUploads{slots: fair.NewSemaphore(maxUploadsPerKey, 0)}
	}
	u.byKey[key].count++
	return u.byKey[key]
}

// remove ends the count of an upload, and forgets the key after its last one.
func (u *uploads) remove(key fair.Caller) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.byKey[key].count--; u.byKey[key].count == 0 {
		delete(u.byKey, key)
	}
}

// waitForDecoder waits for the turn of an upload to be decoded. If it returns no error, the
// caller must call done.
func (u *uploads) waitForDecoder(r *request) (done func(), err error) {
	r.limitTime(decoderWait)
	key := fair.CallerOf(r.Context())
	if err := u.decoder.Acquire(r.Context(), key); err != nil {
		return nil, err
	}
	r.restartClock()
	return func() { u.decoder.Release(key) }, nil
}

// process waits for the decoder, then renders the stored image.
func (u *uploads) process(r *request, header *photo.Header) (*photo.Picture, error) {
	done, err := u.waitForDecoder(r)
	if err != nil {
		return nil, err
	}
	defer done()
	return photo.Process(r.Context(), r.body, header)
}

// allowUpload gives the client as long as an upload may take from now on, instead of what
// other requests have: the body to arrive and the response to be received.
func allowUpload(w http.ResponseWriter, r *request) {
	now := time.Now()
	control := http.NewResponseController(w) // the console passes its deadlines on to the browser's connection
	control.SetReadDeadline(now.Add(uploadTimeout))
	control.SetWriteDeadline(now.Add(uploadTimeout + decoderWait + r.timeout + partTimeout))
}

// readUpload reads a picture into the request's body and checks its header. The
// handler's time begins when all of it has arrived.
func readUpload(w http.ResponseWriter, r *request) (*photo.Header, error) {
	if r.ContentLength > animalstore.MaxUpload {
		return nil, uploadTooLarge()
	}
	allowUpload(w, r)
	began := time.Now()
	contentType, typeErr := uploadType(r.Header)
	var body bytes.Buffer
	target := io.Writer(&body)
	if typeErr != nil {
		target = io.Discard // only its size matters
	} else if r.ContentLength > 0 {
		body.Grow(int(r.ContentLength))
	}
	n, err := io.Copy(target, io.LimitReader(r.Body, animalstore.MaxUpload+1))
	r.waited += time.Since(began)
	switch {
	case err != nil:
		return nil, unreadable(err, animalstore.InvalidImage)
	case n > animalstore.MaxUpload:
		return nil, uploadTooLarge()
	case typeErr != nil:
		return nil, typeErr
	}
	r.restartClock()
	r.body = body.Bytes()
	return photo.Inspect(r.body, contentType)
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
