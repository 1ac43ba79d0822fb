package server

import (
	"bytes"
	"io"
	"net/http"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/photo/phototest"
	"animalstore/internal/testenv"
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

// TestSlowUpload: a picture may take longer to arrive than any other request, and its
// response longer than others.
func TestSlowUpload(t *testing.T) {
	t.Parallel()
	cfg := localConfig(t)
	cfg.Timeouts = Timeouts{ReadHeader: testenv.Deadline, Read: 200 * time.Millisecond, Write: 300 * time.Millisecond, Drain: testenv.Deadline}
	s := run(t, cfg)
	owner, err := s.CreateOwnerKey(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.DB().CreatePet(t.Context(), animalstore.NewPet{Name: "Rex", CategoryID: 1}, nil); err != nil {
		t.Fatal(err)
	}
	picture := phototest.JPEG(phototest.Drawing(300, 200))
	body := &slowly{picture, len(picture)/8 + 1, 60 * time.Millisecond}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.URL()+"/v1/pets/1/photos", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+owner.Secret)
	req.Header.Set("Content-Type", "image/jpeg")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, err := io.ReadAll(res.Body); err != nil || res.StatusCode != http.StatusCreated || !bytes.Contains(body, []byte(`"width":300`)) {
		t.Errorf("got %d %s, %v, want 201", res.StatusCode, body, err)
	}
}
