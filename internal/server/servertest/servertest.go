// Package servertest starts servers for the tests of what they serve.
package servertest

import (
	"context"
	"net/http"
	"path/filepath"
	"testing"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/keys"
	"animalstore/internal/photo"
	"animalstore/internal/photo/phototest"
	"animalstore/internal/server"
	"animalstore/internal/testenv"
)

// Store is a server without background work, with a clock that tests move.
type Store struct {
	T      *testing.T
	URL    string
	DB     db.DB
	Server *server.Server
	*testenv.Clock
}

// Start starts a server that stops when the test ends. Its clients use transport.
func Start(t *testing.T, transport *http.Transport, change ...func(*server.Config)) *Store {
	t.Helper()
	s := &Store{T: t, Clock: testenv.NewClock()}
	cfg := server.Config{
		Database: "sqlite:" + filepath.Join(t.TempDir(), "store.db"), Listen: "127.0.0.1:0",
		Hooks:    server.Hooks{Now: s.Now, NoBackground: true, NoSync: true, RequestTimeout: testenv.Deadline},
		Timeouts: server.Timeouts{Drain: testenv.Deadline},
	}
	for _, f := range change {
		f(&cfg)
	}
	var err error
	if s.Server, err = server.New(t.Context(), cfg); err != nil {
		t.Fatal(err)
	}
	s.URL, s.DB = s.Server.URL(), s.Server.DB()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Server.Run(ctx) }()
	t.Cleanup(func() {
		transport.CloseIdleConnections() // also those that were never used, which the server waits for
		stop()
		if err := <-done; err != nil {
			t.Errorf("stop the server: %v", err)
		}
	})
	return s
}

// Key creates a key and returns its secret and id.
func (s *Store) Key(name string, permissions animalstore.Permissions, perMinute int64) (secret string, id int64) {
	s.T.Helper()
	secret = keys.Mint(animalstore.Production)
	key, err := s.DB.CreateKey(s.T.Context(), animalstore.NewKey{
		Name: name, Plan: animalstore.PlanEnterprise, Limits: animalstore.Limits{PerMinute: perMinute, PerDay: 1 << 30},
		Permissions: permissions, Environment: animalstore.Production,
	}, keys.Hash(secret), animalstore.At(s.Now()))
	if err != nil {
		s.T.Fatal(err)
	}
	return secret, key.ID
}

// Pet adds a pet of the category 1.
func (s *Store) Pet(name string) animalstore.Pet {
	s.T.Helper()
	pet, _, err := s.DB.CreatePet(s.T.Context(), animalstore.NewPet{Name: name, CategoryID: 1}, nil)
	if err != nil {
		s.T.Fatal(err)
	}
	return pet
}

// Photo adds a photo to a pet.
func (s *Store) Photo(petID int64) animalstore.Photo {
	s.T.Helper()
	picture := photo.FromImage(phototest.Drawing(64, 48))
	added, _, err := s.DB.AddPhoto(s.T.Context(), db.NewPhoto{
		PetID: petID, ContentType: picture.ContentType, Width: picture.Width, Height: picture.Height,
		Image: picture.Image, Thumbnail: picture.Thumbnail, At: animalstore.At(s.Now()),
	}, 1<<30, nil)
	if err != nil {
		s.T.Fatal(err)
	}
	return added
}
