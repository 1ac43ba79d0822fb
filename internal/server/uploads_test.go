package server_test

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/keys"
	"animalstore/internal/photo/phototest"
	"animalstore/internal/server"
)

// slowly is a body that arrives in pieces.
type slowly struct {
	rest  []byte
	piece int
	pause time.Duration
}

func (s *slowly) Read(p []byte) (int, error) {
	if len(s.rest) == 0 {
		return 0, io.EOF
	}
	time.Sleep(s.pause)
	n := copy(p[:min(len(p), s.piece)], s.rest)
	s.rest = s.rest[n:]
	return n, nil
}

// TestSlowUpload: a picture may take longer to arrive than any other request, on the fast
// path and on net/http, and its response longer than others.
func TestSlowUpload(t *testing.T) {
	for name, noFastPath := range map[string]bool{"http1": false, "net/http": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := localConfig(t)
			cfg.NoFastPath = noFastPath
			cfg.Timeouts = server.Timeouts{ReadHeader: wait, Read: 4 * time.Second, Write: 5 * time.Second, Drain: wait}
			s := run(t, cfg)
			secret := keys.Mint(animalstore.Production)
			k := animalstore.NewKey{Name: "shop", Plan: animalstore.PlanBusiness, Permissions: animalstore.Read | animalstore.Write, Environment: animalstore.Production}
			if err := k.Validate(); err != nil {
				t.Fatal(err)
			}
			if _, err := s.DB().CreateKey(t.Context(), k, keys.Hash(secret), animalstore.At(time.Now())); err != nil {
				t.Fatal(err)
			}
			if _, _, err := s.DB().CreatePet(t.Context(), animalstore.NewPet{Name: "Rex", CategoryID: 1}, nil); err != nil {
				t.Fatal(err)
			}
			picture := phototest.JPEG(phototest.Drawing(300, 200))
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/v1/pets/1/photos", &slowly{picture, len(picture)/8 + 1, 750 * time.Millisecond})
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+secret)
			req.Header.Set("Content-Type", "image/jpeg")
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer res.Body.Close()
			if body, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusCreated || !bytes.Contains(body, []byte(`"width":300`)) {
				t.Errorf("got %d %s, %v, want 201", res.StatusCode, body, err)
			}
		})
	}
}
