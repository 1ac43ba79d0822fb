//go:build linux

package e2e

import (
	"bytes"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
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

// importForm returns a form with a file of pets.
func importForm(content string) (contentType string, body []byte) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	part, _ := w.CreateFormFile("file", "pets.csv") // a bytes.Buffer never fails
	io.WriteString(part, content)
	w.Close()
	return w.FormDataContentType(), b.Bytes()
}

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
	for range 16 {
		sessions = append(sessions, sessionOf(t, s, adminKey(t, s.database)))
	}
	contentType, small := importForm(columns + "Rex,1\n")
	if status, err := post(sessions[0], contentType, bytes.NewReader(small)); status != http.StatusOK {
		t.Fatalf("a small file: got %d, %v, want 200", status, err)
	}
	before, began := s.peakMemory(), time.Now()

	never, end := io.Pipe() // the last bytes of slow forms
	var slow, wg sync.WaitGroup
	heldType, held := importForm(files[0].content)
	for i := range 200 {
		slow.Go(func() {
			post(sessions[8+i%8], heldType, io.MultiReader(bytes.NewReader(held[:len(held)-100]), never)) // nearly all get 503
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
	end.CloseWithError(io.ErrUnexpectedEOF)
	slow.Wait()
	t.Logf("the peak grew from %d by %d MiB in %.1f s", before>>20, grown>>20, time.Since(began).Seconds())
	if grown > 64<<20 {
		t.Errorf("the peak of the server's memory grew by %d MiB, want at most 64", grown>>20)
	}
}
