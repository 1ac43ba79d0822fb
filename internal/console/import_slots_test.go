package console_test

import (
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/internal/testenv"
)

const formStart = "--x\r\nContent-Disposition: form-data; name=\"file\"; filename=\"pets.csv\"\r\n\r\n"

// askedBody is a body that reports when the server begins to read it.
type askedBody struct {
	io.Reader
	ask func()
}

func (b askedBody) Read(p []byte) (int, error) {
	b.ask()
	return b.Reader.Read(p)
}

// holdFile sends a form with a file, and returns when the server has begun to read it.
func (b *browser) holdFile() (send *io.PipeWriter, response <-chan shown) {
	b.s.T.Helper()
	body, send := io.Pipe()
	asked, got := make(chan struct{}), make(chan shown, 1)
	req, err := http.NewRequest(http.MethodPost, b.s.URL+"/console/pets/import/check", askedBody{body, sync.OnceFunc(func() { close(asked) })})
	if err != nil {
		b.s.T.Fatal(err)
	}
	req.Header.Set("Content-Type", "multipart/form-data; boundary=x")
	req.Header.Set("Expect", "100-continue")
	b.s.http.ExpectContinueTimeout = testenv.Deadline
	go func() { got <- b.roundTrip(req) }()
	<-asked
	return send, got
}

// sendNothing begins a form with a file, whose body never arrives.
func (b *browser) sendNothing() shown {
	body, send := io.Pipe()
	defer send.Close()
	return b.sendBody("/console/pets/import/check", "multipart/form-data; boundary=x", body)
}

// TestImportsAtOnce: two files are read at once and one of a key. Others are refused before
// they are sent.
func TestImportsAtOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.http.DisableKeepAlives = true // a refused form may end its connection, and Go repeats no POST
	secret, _ := s.Key("shared", everything, 1<<30)
	first, same := s.browser(), s.browser()
	first.signIn(secret)
	same.signIn(secret)
	second, third := s.signedIn(everything), s.signedIn(everything)

	send, response := first.holdFile()
	same.sendNothing().want(t, "the same key", http.StatusServiceUnavailable)
	third.importFile("check", "pets.csv", petLines(1), "").want(t, "another key", http.StatusOK)
	sendSecond, responseSecond := second.holdFile()
	p := third.sendNothing()
	p.want(t, "a third key", http.StatusServiceUnavailable, "Nothing was added")
	if p.header.Get("Retry-After") == "" {
		t.Error("a third key: got no Retry-After")
	}
	third.importFile("check", "pets.csv", petLines(200_000), "").want(t, "a large file", http.StatusServiceUnavailable)

	io.WriteString(send, formStart+petLines(1)+"\r\n--x--\r\n")
	send.Close()
	(<-response).want(t, "the first", http.StatusOK, "one pet")
	same.importFile("check", "pets.csv", petLines(1), "").want(t, "after the first", http.StatusOK)
	sendSecond.Close()
	(<-responseSecond).want(t, "a form that is cut off", http.StatusBadRequest)
}

// TestSlowImport: a file that takes too long to arrive gives way to others.
func TestSlowImport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startInBubble(t)
		first, second, third := s.signedIn(everything), s.signedIn(everything), s.signedIn(everything)
		var responses []<-chan shown
		for _, b := range []*browser{first, second} {
			send, response := b.holdFile()
			defer send.Close()
			go io.WriteString(send, formStart+petLines(9)) // a pipe keeps nothing
			responses = append(responses, response)
		}
		time.Sleep(9 * time.Second)
		third.importFile("check", "pets.csv", petLines(1), "").want(t, "before 10 s", http.StatusServiceUnavailable)
		time.Sleep(time.Second)
		synctest.Wait()
		third.importFile("check", "pets.csv", petLines(1), "").want(t, "after 10 s", http.StatusOK)
		for _, response := range responses {
			(<-response).want(t, "a slow file", http.StatusBadRequest, "10 seconds")
		}
	})
}

// TestUnreadProgress: browsers that read nothing of their progress give way to others.
func TestUnreadProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := startInBubble(t)
		third := s.signedIn(everything)
		for range 2 {
			b := s.signedIn(everything)
			req, err := http.NewRequest(http.MethodPost, s.URL+"/console/pets/import/add", strings.NewReader(formStart+petLines(1)+"\r\n--x--\r\n"))
			if err != nil {
				t.Fatal(err)
			}
			req.Header = http.Header{"Accept": {"text/plain"}, "Content-Type": {"multipart/form-data; boundary=x"}}
			req.AddCookie(&http.Cookie{Name: "animalstore_session", Value: b.cookie})
			conn, _ := s.http.DialContext(t.Context(), "", "") // a pipe can always be made
			defer conn.Close()
			if err := req.Write(conn); err != nil {
				t.Fatal(err)
			}
		}
		synctest.Wait()
		third.importFile("check", "pets.csv", petLines(1), "").want(t, "while their first lines are sent", http.StatusServiceUnavailable)
		time.Sleep(11 * time.Second)
		third.importFile("check", "pets.csv", petLines(1), "").want(t, "later", http.StatusOK)
	})
}

// TestImportCharged: a file is charged as one request, before it is read.
func TestImportCharged(t *testing.T) {
	t.Parallel()
	s := start(t)
	secret, _ := s.Key("free", animalstore.Write, 5)
	b := s.browser()
	b.signIn(secret)
	for _, action := range []string{"check", "add"} {
		b.importFile(action, "pets.csv", mistakes(1), "").want(t, action, http.StatusBadRequest)
	}
	b.importFile("add", "pets.csv", petLines(1), "").want(t, "add", http.StatusOK)
	b.sendNothing().want(t, "over the limit", http.StatusTooManyRequests)
}
