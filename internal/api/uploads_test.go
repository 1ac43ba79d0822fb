package api_test

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/photo/phototest"
	"animalstore/internal/testenv"
)

// TestUploadsTakeTurns: a key that uploads over many connections delays neither the upload
// of another key nor its reads for long, and all of its own succeed.
func TestUploadsTakeTurns(t *testing.T) {
	testenv.Slow(t)
	s := start(t)
	var pets []animalstore.Pet
	for range 4 {
		pets = append(pets, s.add(t, animalstore.NewPet{Name: "Rex"})...)
	}
	picture := string(phototest.JPEG(phototest.Drawing(600, 450)))
	other := s.key(t, readWrite)
	mine := upload(pets[3].ID, "image/jpeg", smallJPEG)
	mine.key = other
	s.do(t, mine).want(t, http.StatusCreated, "") // its key and connection are ready
	const connections = 16
	busy := make(chan error, connections)
	for i := range connections {
		go func() {
			got, err := s.send(t.Context(), upload(pets[i%3].ID, "image/jpeg", picture))
			if err == nil && got.status != http.StatusCreated {
				err = fmt.Errorf("got %v, want 201", got)
			}
			busy <- err
		}()
	}
	first := <-busy // now they are in progress
	before := len(busy)
	s.do(t, mine).want(t, http.StatusCreated, "")
	if waited := len(busy) - before; waited > connections/2 {
		t.Errorf("another key waited for %d of %d uploads, want at most half", waited, connections)
	}
	s.do(t, call{path: "/v1/pets", key: other}).want(t, http.StatusOK, "")
	if err := first; err != nil {
		t.Error(err)
	}
	for range connections - 1 {
		if err := <-busy; err != nil {
			t.Error(err)
		}
	}
}

// TestTrickledUploads: four keys that send a byte now and then, over 16 connections that
// they open again whenever one is cut off, don't keep another key from uploading.
func TestTrickledUploads(t *testing.T) {
	sqliteOnly(t, "uploads that are cut off never reach the database")
	testenv.Slow(t)
	s := start(t)
	pet := s.add(t, animalstore.NewPet{Name: "Rex"})[0].ID
	ctx, cancel := context.WithCancel(t.Context())
	var hostile sync.WaitGroup
	defer hostile.Wait()
	defer cancel()
	var refused atomic.Int64
	for range 4 {
		secret := s.key(t, readWrite)
		for range 4 {
			hostile.Go(func() {
				for ctx.Err() == nil {
					if strings.HasPrefix(s.trickle(ctx, pet, secret), "HTTP/1.1 503 ") {
						refused.Add(1)
					}
				}
			})
		}
	}
	mine := upload(pet, "image/jpeg", string(phototest.JPEG(phototest.Drawing(600, 450))))
	mine.key = s.key(t, readWrite)
	for n := 0; refused.Load() == 0; n++ { // the first may come before the others
		began := time.Now()
		got := s.do(t, mine)
		if took := time.Since(began); got.status != http.StatusCreated || took > 15*time.Second {
			t.Fatalf("upload %d beside slow ones: got %v after %v, want 201 in a few seconds", n, got, took)
		}
	}
}

// trickle begins an upload, sends a byte now and then, and returns the beginning of the
// response.
func (s *service) trickle(ctx context.Context, pet int64, secret string) string {
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		return err.Error()
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	fmt.Fprintf(conn, "POST /v1/pets/%d/photos HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: image/jpeg\r\nContent-Length: 1000000\r\n\r\n\xff\xd8", pet, secret)
	done := make(chan string)
	go func() {
		status := make([]byte, 16)
		n, _ := io.ReadFull(conn, status)
		done <- string(status[:n])
	}()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case status := <-done:
			return status
		case <-tick.C:
			conn.Write([]byte{0})
		}
	}
}
