//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"animalstore/internal/testenv"
)

// peakMemory is the most memory that a server has had, in bytes.
func (s *server) peakMemory() int64 {
	s.t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(status), "VmHWM:")
	var kilobytes int64
	if _, err := fmt.Sscan(text, &kilobytes); err != nil {
		s.t.Fatal(err)
	}
	return kilobytes << 10
}

// sessionOf signs in to the console with a new key.
func sessionOf(t *testing.T, s *server, name string) *http.Cookie {
	t.Helper()
	body := fmt.Sprintf(`{"name":%q,"plan":"enterprise","limits":{"perMinute":1000000,"perDay":1000000},"permissions":["read","write"]}`, name)
	created := newClient(t, s, s.ownerKey()).do(t, http.MethodPost, "/v1/keys", body)
	_, rest, _ := strings.Cut(created.body, `"secret":"`)
	secret, _, found := strings.Cut(rest, `"`)
	if !found {
		t.Fatalf("got no key in %s", created.body)
	}
	client := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	res, err := client.PostForm(s.url+"/console/sign-in", url.Values{"key": {secret}})
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	for _, cookie := range res.Cookies() {
		if cookie.Name == "animalstore_session" {
			return cookie
		}
	}
	t.Fatalf("sign in: got %s without a session", res.Status)
	return nil
}

// importForm returns a form with a file of pets.
func importForm(content string) (contentType string, body []byte) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, _ := w.CreateFormFile("file", "pets.csv") // a bytes.Buffer never fails
	io.WriteString(part, content)
	w.Close()
	return w.FormDataContentType(), b.Bytes()
}

// slowBody sends a form except for its last bytes, and holds on to its connection until done.
func slowBody(form []byte, done <-chan struct{}) io.Reader {
	return io.MultiReader(bytes.NewReader(form[:len(form)-100]), readerFunc(func([]byte) (int, error) {
		<-done
		return 0, io.ErrUnexpectedEOF
	}))
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(p []byte) (int, error) { return f(p) }

// TestImportMemory: files of pets in the console don't exhaust the memory, although many
// arrive at once, some slowly, and each is made to take as much as possible.
func TestImportMemory(t *testing.T) {
	testenv.OnlySoak(t, "sends 200 large files at once")
	t.Parallel()
	const size = 5<<20 - 1000
	columns := "name,categoryId\n"
	names := columns + strings.Repeat(strings.Repeat("x", 500)+",1\n", 10_000)
	files := []struct {
		content string
		status  int
	}{
		{columns + strings.Repeat(",x\n", size/3), http.StatusBadRequest},
		{names, http.StatusOK},
		{columns + strings.Repeat(strings.Repeat(",", 900_000)+"\n", 5), http.StatusBadRequest},
		{columns + strings.Repeat(strings.Repeat("x", 900_000)+",1\n", 5), http.StatusBadRequest},
	}
	s := start(t)
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
	post := func(session *http.Cookie, contentType string, body io.Reader) (int, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/console/pets/import/check", body)
		if err != nil {
			return 0, err
		}
		req.Header.Set("Content-Type", contentType)
		req.AddCookie(session)
		res, err := client.Do(req)
		if err != nil {
			return 0, err
		}
		defer res.Body.Close()
		_, err = io.Copy(io.Discard, res.Body)
		return res.StatusCode, err
	}
	var sessions []*http.Cookie
	for i := range 16 {
		sessions = append(sessions, sessionOf(t, s, fmt.Sprint("key ", i)))
	}
	contentType, small := importForm(columns + "Rex,1\n")
	if status, err := post(sessions[0], contentType, bytes.NewReader(small)); status != http.StatusOK {
		t.Fatalf("a small file: got %d, %v, want 200", status, err)
	}
	before, began := s.peakMemory(), time.Now()

	done := make(chan struct{})
	var slow, wg sync.WaitGroup
	heldType, held := importForm(files[0].content)
	for i := range 200 {
		slow.Go(func() {
			post(sessions[8+i%8], heldType, slowBody(held, done)) // nearly all get 503
		})
	}
	for i, session := range sessions[:8] {
		wg.Go(func() {
			file := files[i%len(files)]
			contentType, form := importForm(file.content)
			testenv.Eventually(t, "the file is read", func() bool {
				status, err := post(session, contentType, bytes.NewReader(form))
				if err == nil && status != http.StatusServiceUnavailable && status != file.status {
					t.Errorf("file %d: got %d, want %d", i, status, file.status)
				}
				return err == nil && status != http.StatusServiceUnavailable
			})
		})
	}
	wg.Wait()
	grown := s.peakMemory() - before
	close(done)
	slow.Wait()
	t.Logf("the peak grew from %d by %d MiB in %.1f s", before>>20, grown>>20, time.Since(began).Seconds())
	if grown > 64<<20 {
		t.Errorf("the peak of the server's memory grew by %d MiB, want at most 64", grown>>20)
	}
}
