package server

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/internal/photo/phototest"
	"animalstore/internal/testenv"
)

// TestUploadsWait: an upload that waits for a slot longer than other requests may take gets
// its slot, or is told that there is none.
func TestUploadsWait(t *testing.T) {
	for name, http2 := range map[string]bool{"HTTP/1.1": false, "HTTP/2": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, network := runInBubble(t, func(cfg *Config) {
					if http2 {
						useCertificate(t, cfg, 1)
					}
				})
				testWaitingUploads(t, s, http2, network)
				s.stop()
				if err := s.wait(t); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// testWaitingUploads sends uploads while both slots of their key are taken.
func testWaitingUploads(t *testing.T, s *running, http2 bool, network testenv.Pipes) {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!http2)
	protocols.SetHTTP2(http2)
	transport := &http.Transport{
		DialContext:           network.Dial,
		Protocols:             protocols,
		TLSClientConfig:       &tls.Config{InsecureSkipVerify: true},
		ExpectContinueTimeout: testenv.Deadline,
	}
	defer transport.CloseIdleConnections()
	req := uploadRequest(t, s, s.URL())
	// A refused body must not be on its way: pipes keep none, so sending it would fail first.
	req.Header.Set("Expect", "100-continue")
	upload := func(picture io.Reader) string {
		req := req.Clone(t.Context())
		req.Body = io.NopCloser(picture)
		res, err := transport.RoundTrip(req)
		if err != nil {
			return err.Error()
		}
		defer res.Body.Close()
		body, err := io.ReadAll(res.Body)
		return fmt.Sprintf("%d %s%v", res.StatusCode, body, err)
	}
	hold := func() *io.PipeWriter { // takes a slot, and sends nothing
		body, send := io.Pipe()
		go upload(body)
		time.Sleep(time.Second)
		return send
	}
	picture := phototest.JPEG(phototest.Drawing(300, 200))
	patient := make(chan string, 1)

	first, second := hold(), hold()
	defer second.Close()
	go func() { patient <- upload(bytes.NewReader(picture)) }()
	time.Sleep(20 * time.Second)
	first.Close()
	if got := <-patient; !strings.HasPrefix(got, "201 ") {
		t.Errorf("an upload that got a slot after 20 s: got %s, want 201", got)
	}

	// Each of these holds its slot until the server gives up waiting for its body, 60 s
	// later: the second until 60 s after the beginning of this test, the third until 80 s,
	// and those that follow take over from them, before the last has waited its 60 s.
	defer hold().Close()
	time.Sleep(10 * time.Second)
	defer hold().Close()
	defer hold().Close()
	time.Sleep(10 * time.Second)
	if got := upload(bytes.NewReader(picture)); !strings.HasPrefix(got, "503 ") || !strings.Contains(got, string(animalstore.Overloaded)) {
		t.Errorf("an upload that got no slot within its 60 s: got %s, want 503 overloaded", got)
	}
}

// uploadRequest returns a request that adds a JPEG to a pet, without the picture.
func uploadRequest(t *testing.T, s *running, url string) *http.Request {
	t.Helper()
	owner, err := s.CreateOwnerKey(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.DB().CreatePet(t.Context(), animalstore.NewPet{Name: "Rex", CategoryID: 1}, nil); err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/pets/1/photos", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header = http.Header{"Authorization": {"Bearer " + owner.Secret}, "Content-Type": {"image/jpeg"}}
	return req
}
