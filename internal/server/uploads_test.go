package server

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
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
	c := newUploadClient(t, s, http2, network)
	defer c.close()
	picture := phototest.JPEG(phototest.Drawing(300, 200))
	patient, unlucky := make(chan string, 1), make(chan string, 1)

	first, second := c.hold(), c.hold()
	<-first.begun
	<-second.begun
	go func() { patient <- c.upload(bytes.NewReader(picture)) }()
	time.Sleep(20 * time.Second)
	close(first.finish)
	if got := <-patient; !strings.HasPrefix(got, "201 ") {
		t.Errorf("an upload that got a slot after 20 s: got %s, want 201", got)
	}

	// Each of these holds its slot until the server gives up waiting for its body, 60 s
	// later: the second until 60 s after the beginning of this test, the third until 80 s,
	// and those that follow take over from them, before the last has waited its 60 s.
	third := c.hold()
	<-third.begun
	time.Sleep(10 * time.Second)
	c.hold()
	c.hold()
	time.Sleep(10 * time.Second)
	go func() { unlucky <- c.upload(bytes.NewReader(picture)) }()
	if got := <-unlucky; !strings.HasPrefix(got, "503 ") || !strings.Contains(got, string(animalstore.Overloaded)) {
		t.Errorf("an upload that got no slot within its 60 s: got %s, want 503 overloaded", got)
	}
}

// uploadClient sends pictures of a pet.
type uploadClient struct {
	t         *testing.T
	url       string
	secret    string
	transport *http.Transport
	held      []*heldBody
}

// close ends what is still held.
func (c *uploadClient) close() {
	for _, b := range c.held {
		b.Close()
	}
	c.transport.CloseIdleConnections()
}

func newUploadClient(t *testing.T, s *running, http2 bool, network testenv.Pipes) *uploadClient {
	t.Helper()
	owner, err := s.CreateOwnerKey(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	pet, _, err := s.DB().CreatePet(t.Context(), animalstore.NewPet{Name: "Rex", CategoryID: 1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(!http2)
	protocols.SetHTTP2(http2)
	transport := &http.Transport{
		DialContext:           network.Dial,
		Protocols:             protocols,
		TLSClientConfig:       &tls.Config{InsecureSkipVerify: true},
		ExpectContinueTimeout: testenv.Deadline,
	}
	return &uploadClient{t: t, url: fmt.Sprintf("%s/v1/pets/%d/photos", s.URL(), pet.ID), secret: owner.Secret, transport: transport}
}

// upload sends a picture and returns the status and the body of the response, or an error.
func (c *uploadClient) upload(picture io.Reader) string {
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url, picture)
	if err != nil {
		return err.Error()
	}
	req.Header.Set("Authorization", "Bearer "+c.secret)
	req.Header.Set("Content-Type", "image/jpeg")
	if _, held := picture.(*heldBody); held {
		req.Header.Set("Expect", "100-continue")
	}
	res, err := c.transport.RoundTrip(req)
	if err != nil {
		return err.Error()
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return fmt.Sprintf("%d %s%v", res.StatusCode, body, err)
}

// hold starts an upload that takes a slot and sends nothing.
func (c *uploadClient) hold() *heldBody {
	b := &heldBody{begun: make(chan struct{}), finish: make(chan struct{}), closed: make(chan struct{})}
	c.held = append(c.held, b)
	go c.upload(b)
	return b
}

// heldBody is a body that the server asks for when the upload has a slot, because of its
// Expect. It ends when finish is closed.
type heldBody struct {
	begun, finish, closed chan struct{}
	begin, end            sync.Once
}

func (b *heldBody) Read([]byte) (int, error) {
	b.begin.Do(func() { close(b.begun) })
	select {
	case <-b.finish:
	case <-b.closed:
	}
	return 0, io.EOF
}

func (b *heldBody) Close() error {
	b.end.Do(func() { close(b.closed) })
	return nil
}
