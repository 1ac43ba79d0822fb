package main

import (
	"bytes"
	"fmt"
	"image"
	"image/jpeg"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"animalstore"
)

const (
	uploadsWork       = "uploads"
	uploadConnections = 16
	uploadLength      = 15 * time.Second
)

// measureUploads measures how long one key waits for first pages while another uploads
// pictures of 12 megapixels, on connections that are never idle.
func (b *bench) measureUploads(engine string, s *server) cost {
	stop := s.uploadPictures(strings.Fields(string(must(os.ReadFile(s.keysFile))))[1], largePicture(b.amount(4000), b.amount(3000)))
	var waits []float64
	for end := time.Now().Add(b.length(uploadLength)); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		began := time.Now()
		s.send(http.MethodGet, s.api.list(page{limit: 20}), "")
		waits = append(waits, float64(time.Since(began).Microseconds())/1000)
	}
	finished := stop()
	slices.Sort(waits)
	return cost{fmt.Sprintf("first page during %d uploads of 12 megapixels in %v, %s: p99 ms", finished, uploadLength, engine), s.name, nil,
		[]float64{waits[len(waits)*99/100]}, barFor(b.command, uploadsWork, "")}
}

// uploadPictures uploads pictures until it is stopped, and returns once the first is
// stored. stop returns how many were stored since then.
func (s *server) uploadPictures(key string, picture []byte) (stop func() (finished int64)) {
	callers := &http.Client{Timeout: 2 * time.Minute, Transport: &http.Transport{MaxIdleConnsPerHost: uploadConnections}}
	other := *s
	other.key = key
	var finished, refused atomic.Int64
	ended, first := make(chan struct{}), make(chan struct{}, 1)
	failed := make(chan error, uploadConnections)
	var senders sync.WaitGroup
	for range uploadConnections {
		senders.Go(func() {
			failed <- attempt(func() {
				for {
					var pet animalstore.Pet
					other.decode(http.MethodPost, s.api.create, newPet, &pet)
					for range animalstore.MaxPhotos {
						select {
						case <-ended:
							return
						default:
						}
						if !other.upload(callers, pet.ID, picture) {
							refused.Add(1)
							continue
						}
						finished.Add(1)
						select {
						case first <- struct{}{}:
						default:
						}
					}
				}
			})
		})
	}
	select {
	case <-first:
	case err := <-failed:
		check(err)
	}
	before := finished.Load()
	return func() int64 {
		n := finished.Load() - before
		close(ended)
		senders.Wait()
		callers.CloseIdleConnections()
		for range uploadConnections {
			check(<-failed)
		}
		progress("%d uploads finished and %d were refused", n, refused.Load())
		return n
	}
}

// upload adds a photo. It returns false if the server had no time for it.
func (s *server) upload(callers *http.Client, pet int64, picture []byte) bool {
	r := must(http.NewRequest(http.MethodPost, fmt.Sprintf("http://%s/v1/pets/%d/photos", s.addr, pet), bytes.NewReader(picture)))
	r.Header.Set("Authorization", "Bearer "+s.key)
	r.Header.Set("Content-Type", "image/jpeg")
	got := must(callers.Do(r))
	defer got.Body.Close()
	body := must(io.ReadAll(got.Body))
	if got.StatusCode != http.StatusCreated && got.StatusCode != http.StatusServiceUnavailable {
		check(fmt.Errorf("upload: %s: %s", got.Status, body))
	}
	return got.StatusCode == http.StatusCreated
}

// largePicture returns a picture that has some megabytes at 12 megapixels, as of a phone.
func largePicture(width, height int) []byte {
	img := image.NewRGBA(image.Rect(0, 0, width, height))
	random := rand.New(rand.NewPCG(5, 6))
	for i := range img.Pix {
		img.Pix[i] = uint8(i/(4*width)%256)/2 + uint8(random.Uint32()%32)
	}
	var b bytes.Buffer
	check(jpeg.Encode(&b, img, &jpeg.Options{Quality: 85}))
	return b.Bytes()
}
