package s3

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"animalstore/internal/db/transfer"
	"animalstore/internal/db/transfer/s3/s3test"
	"animalstore/internal/testenv"
)

// openBucket returns a bucket of a stand-in for a service.
func openBucket(t *testing.T, s *s3test.Server, prefix string) *Bucket {
	t.Helper()
	return openImpatient(t, s, prefix, 0)
}

// openImpatient returns one that waits this long for a service that stalls.
func openImpatient(t *testing.T, s *s3test.Server, prefix string, stall time.Duration) *Bucket {
	t.Helper()
	b, err := New(Address{s3test.Bucket, prefix}, Config{Endpoint: s.URL, AccessKey: s3test.AccessKey, SecretKey: s3test.SecretKey, Stall: stall})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func newFile(t *testing.T, size int) (path string, content []byte) {
	t.Helper()
	path, content = filepath.Join(t.TempDir(), "file"), bytes.Repeat([]byte("animals "), size/8)
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path, content
}

const (
	small = 1 << 16
	large = 17 << 20 // in two parts
)

// TestBucket: what is put is listed, opened and deleted, with the prefix or without. Nothing
// below the place or next to it belongs to it.
func TestBucket(t *testing.T) {
	for _, prefix := range []string{"", "shop", "a/b"} {
		s := s3test.Start(t)
		b := openBucket(t, s, prefix)
		key := b.directory() + "copy.db"
		s.Set(b.directory()+"below/other.db", nil)
		s.Begin(b.directory() + "below/other.db")
		s.Begin(key)
		if prefix != "" {
			s.Set(prefix+"-2/copy.db", nil)
			s.Begin(prefix + "-2/copy.db")
		}
		others, begun := s.Keys(), len(s.Unfinished())
		if names, err := b.Unfinished(t.Context()); err != nil || !slices.Equal(names, []string{"copy.db"}) {
			t.Errorf("prefix %q: got %q, %v unfinished, want copy.db", prefix, names, err)
		}
		if err := b.Abort(t.Context(), "copy.db"); err != nil || len(s.Unfinished()) != begun-1 {
			t.Errorf("prefix %q: got %v after an abort, and %q", prefix, err, s.Unfinished())
		}
		for _, size := range []int{small, large} {
			file, content := newFile(t, size)
			var sent int64
			if err := b.Put(t.Context(), "copy.db", file, func(n int64) { sent = n }); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(s.Get(key), content) || sent != int64(size) {
				t.Errorf("prefix %q: got %d bytes under %s, and progress until %d, want %d", prefix, len(s.Get(key)), key, sent, size)
			}
			if files, err := b.List(t.Context()); err != nil || !slices.Equal(files, []transfer.File{{Name: "copy.db", Size: int64(size)}}) {
				t.Errorf("prefix %q: got the list %v, %v", prefix, files, err)
			}
			r, err := b.Open(t.Context(), "copy.db", 0, "")
			if err != nil {
				t.Fatal(err)
			}
			if got, err := io.ReadAll(r); err != nil || !bytes.Equal(got, content) {
				t.Errorf("prefix %q: read %d bytes, %v", prefix, len(got), err)
			}
			r.Close()
		}
		if err := b.Delete(t.Context(), "copy.db"); err != nil || !slices.Equal(s.Keys(), others) {
			t.Errorf("prefix %q: got %v after a delete, and %q", prefix, err, s.Keys())
		}
		if _, err := b.Open(t.Context(), "copy.db", 0, ""); !errors.Is(err, ErrNotFound) {
			t.Errorf("prefix %q: got %v for a deleted file, want ErrNotFound", prefix, err)
		}
	}
}

// TestFailures_Slow: with a service that fails, whether it does so at once, in the middle or by
// not responding, an upload ends with an error, and nothing is stored under its name. A
// refusal is the same at any request, so most are tried once.
func TestFailures_Slow(t *testing.T) {
	cut := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	const always, secondPart, end = "every request", "the second part", "the end"
	places := map[string]func(r *http.Request) bool{
		always:     func(*http.Request) bool { return true },
		secondPart: func(r *http.Request) bool { return r.URL.Query().Get("partNumber") == "2" },
		end:        func(r *http.Request) bool { return r.Method == http.MethodPost && r.URL.Query().Has("uploadId") },
	}
	for name, test := range map[string]struct {
		fail func(w http.ResponseWriter, r *http.Request)
		want string
		at   []string
	}{
		"fails":               {func(w http.ResponseWriter, _ *http.Request) { s3test.Respond(w, 500, "InternalError") }, "500", []string{always, secondPart, end}},
		"is full":             {func(w http.ResponseWriter, _ *http.Request) { s3test.Respond(w, 507, "XMinioStorageFull") }, "507", []string{secondPart}},
		"refuses credentials": {func(w http.ResponseWriter, _ *http.Request) { s3test.Respond(w, 403, "AccessDenied") }, "403", []string{always}},
		"stalls":              {cut, "", []string{always, secondPart, end}},
		"cuts":                {cut, "", []string{secondPart, end}},
		"isn't an S3 service": {func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "<html>Hello") }, "", []string{always, end}},
		"redirects": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://192.0.2.1/", http.StatusTemporaryRedirect)
		}, "", []string{always}},
		"has no such bucket": {func(w http.ResponseWriter, _ *http.Request) { s3test.Respond(w, 404, "NoSuchBucket") }, "does not exist", []string{always}},
		"stores nothing at all": {func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			w.Header().Set("ETag", `"x"`)
			io.WriteString(w, "<R><Bucket>b</Bucket><UploadId>1</UploadId><ETag>x</ETag></R>")
		}, "", []string{always, end}},
	} {
		for _, at := range test.at {
			fails := places[at]
			t.Run(name+" at "+at, func(t *testing.T) {
				t.Parallel()
				s := s3test.Start(t)
				var healthy atomic.Bool
				s.Fail = func(w http.ResponseWriter, r *http.Request) bool {
					if healthy.Load() || !fails(r) {
						return false
					}
					if name == "stalls" {
						<-t.Context().Done() // the end of the test
					}
					test.fail(w, r)
					return true
				}
				b := openBucket(t, s, "shop")
				failing := b
				if name == "stalls" {
					failing = openImpatient(t, s, "shop", 100*time.Millisecond)
				}
				file, _ := newFile(t, large)
				snapshot, _ := transfer.ParseSnapshot("store-0a1b2c3d4e5f-20261115T090000Z.db")
				err := transfer.Upload(t.Context(), failing, snapshot, file, nil)
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Fatalf("got %v, want an error with %q", err, test.want)
				}
				if keys := s.Keys(); len(keys) > 0 {
					t.Errorf("got %q, want nothing stored", keys)
				}
				// Once the service works, the same upload succeeds, and nothing is left over.
				healthy.Store(true)
				if err := transfer.Upload(t.Context(), b, snapshot, file, nil); err != nil {
					t.Fatal(err)
				}
				if keys := s.Keys(); len(keys) != 1 || len(s.Get(keys[0])) != large || len(s.Unfinished()) > 0 {
					t.Errorf("got %q, and %q unfinished, want one complete object", keys, s.Unfinished())
				}
			})
		}
	}
}

// TestDownloadFails_Slow: a download that is cut or stalls in the middle ends with an error.
func TestDownloadFails_Slow(t *testing.T) {
	for name, stall := range map[string]bool{"is cut": false, "stalls": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := s3test.Start(t)
			s.Set("copy.db", make([]byte, small))
			s.Fail = func(w http.ResponseWriter, r *http.Request) bool {
				if !strings.HasSuffix(r.URL.Path, "/copy.db") {
					return false
				}
				w.Header().Set("Content-Length", strconv.Itoa(small))
				w.Header().Set("Last-Modified", "Sun, 15 Nov 2026 09:00:00 GMT")
				w.Write(make([]byte, small/2))
				http.NewResponseController(w).Flush()
				if stall {
					<-t.Context().Done() // the end of the test
				}
				panic(http.ErrAbortHandler)
			}
			r, err := openImpatient(t, s, "", time.Second).Open(t.Context(), "copy.db", 0, "")
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if n, err := io.Copy(io.Discard, r); err == nil || n >= small {
				t.Errorf("read %d bytes, %v, want less than %d and an error", n, err, small)
			}
		})
	}
}

// TestOpenInTheMiddle: a file is read from the middle on only if it is still the same and the
// service can do that.
func TestOpenInTheMiddle(t *testing.T) {
	for name, test := range map[string]struct {
		change func(s *s3test.Server, r *http.Request)
		at     int64
		want   string
	}{
		"the same":      {func(*s3test.Server, *http.Request) {}, 3, "mals"},
		"another":       {func(s *s3test.Server, _ *http.Request) { s.Set("copy.db", []byte("cats")) }, 0, "cats"},
		"a longer one":  {func(s *s3test.Server, _ *http.Request) { s.Set("copy.db", []byte("many cats")) }, 0, "many cats"},
		"without range": {func(_ *s3test.Server, r *http.Request) { r.Header.Del("Range") }, 0, "animals"},
		"another range": {func(_ *s3test.Server, r *http.Request) { r.Header.Set("Range", "bytes=2-") }, 0, "animals"},
		"another, without a condition": {func(s *s3test.Server, r *http.Request) {
			r.Header.Del("If-Match")
			s.Set("copy.db", []byte("many cats"))
		}, 0, "many cats"},
	} {
		t.Run(name, func(t *testing.T) {
			s := s3test.Start(t)
			s.Set("copy.db", []byte("animals"))
			s.Fail = func(_ http.ResponseWriter, r *http.Request) bool {
				if r.Header.Get("Range") != "" {
					test.change(s, r)
				}
				return false
			}
			b := openBucket(t, s, "")
			first, err := b.Open(t.Context(), "copy.db", 0, "")
			if err != nil {
				t.Fatal(err)
			}
			first.Close()
			if first.At != 0 || first.Size != 7 || first.Version == "" {
				t.Errorf("got %+v of the whole file", first)
			}
			rest, err := b.Open(t.Context(), "copy.db", 3, first.Version)
			if err != nil {
				t.Fatal(err)
			}
			defer rest.Close()
			got, err := io.ReadAll(rest)
			if err != nil || string(got) != test.want || rest.At != test.at || rest.Size != test.at+int64(len(test.want)) {
				t.Errorf("got %q from %d of %d, %v, want %q from %d", got, rest.At, rest.Size, err, test.want, test.at)
			}
		})
	}
}

// TestCancel: an upload that is cancelled ends soon, and is aborted.
func TestCancel(t *testing.T) {
	s := s3test.Start(t)
	ctx, cancel := context.WithCancel(t.Context())
	s.Fail = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.URL.Query().Get("partNumber") == "2" {
			cancel()
			<-t.Context().Done()
			return true
		}
		return false
	}
	file, _ := newFile(t, large)
	if err := openBucket(t, s, "").Put(ctx, "copy.db", file, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want context.Canceled", err)
	}
	testenv.Eventually(t, "the upload is aborted", func() bool { return len(s.Unfinished()) == 0 })
	if keys := s.Keys(); len(keys) > 0 {
		t.Errorf("got %q, want nothing stored", keys)
	}
}

// TestLostResponse: an upload succeeds if it was completed, but the response was lost.
func TestLostResponse(t *testing.T) {
	s := s3test.Start(t)
	var lost atomic.Bool
	s.Fail = func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || !r.URL.Query().Has("uploadId") || lost.Swap(true) {
			return false
		}
		s.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}
	file, content := newFile(t, large)
	if err := openBucket(t, s, "").Put(t.Context(), "copy.db", file, nil); err != nil || !bytes.Equal(s.Get("copy.db"), content) {
		t.Errorf("got %v and %d bytes, want success", err, len(s.Get("copy.db")))
	}
}

// TestAddresses: what an address names. A misspelled one isn't a path.
func TestAddresses(t *testing.T) {
	const name = "store-0a1b2c3d4e5f-20261115T090000Z.db"
	for address, want := range map[string][2]string{
		"s3://acme":                {"s3://acme", ""},
		"s3://acme/":               {"s3://acme", ""},
		"s3://acme/shop/":          {"s3://acme/shop", ""},
		"s3://acme/a/b.db":         {"s3://acme/a/b.db", ""},
		"s3://acme/" + name:        {"s3://acme", name},
		"s3://acme/a/b/" + name:    {"s3://acme/a/b", name},
		"s3://":                    {},
		"s3:///shop":               {},
		"s3://ab/shop":             {}, // too short for a bucket
		"s3:/acme/shop":            {},
		"s3:acme/shop":             {},
		"S3://acme/shop":           {},
		"s4://acme/shop":           {},
		"s3://acme/a//b":           {},
		"s3://acme/../c":           {},
		"s3://key:secret@b/":       {},
		"https://b.example/b":      {},
		"s3://acme/shop?versions=": {"s3://acme/shop?versions=", ""},
	} {
		if !Is(address) {
			t.Errorf("%s: taken for a path", address)
		}
		a, err := ParseAddress(address)
		if (err != nil) != (want[0] == "") {
			t.Errorf("%s: got %v", address, err)
		}
		if err != nil {
			continue
		}
		if place, name, _ := a.Snapshot(); place.String() != want[0] || name != want[1] {
			t.Errorf("%s: got %s and %q, want %q", address, place, name, want)
		}
	}
}

// TestEndpoints: backups leave this machine only encrypted.
func TestEndpoints(t *testing.T) {
	for endpoint, want := range map[string]string{
		"":                            "s3.amazonaws.com",
		"https://s3.example.com":      "s3.example.com",
		"https://s3.example.com:900/": "s3.example.com:900",
		"http://127.0.0.1:9000":       "127.0.0.1:9000",
		"http://[::1]:9000":           "[::1]:9000",
		"http://localhost:9000":       "localhost:9000",
		"http://s3.example.com":       "",
		"http://localhost.example":    "",
		"http://10.0.0.1:9000":        "",
		"https://s3.example.com/b":    "",
		"https://k:s@s3.example.com":  "",
		"s3.example.com":              "",
		"ftp://127.0.0.1":             "",
	} {
		b, err := New(Address{Bucket: "b"}, Config{Endpoint: endpoint, AccessKey: "k", SecretKey: "s"})
		switch {
		case want == "" && err == nil:
			t.Errorf("%s: got %s, want it refused", endpoint, b.client.EndpointURL())
		case want != "" && (err != nil || b.client.EndpointURL().Host != want):
			t.Errorf("%s: got %v, %v, want %s", endpoint, b, err, want)
		}
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestBodyIsReleased: net/http may read the body of a request that failed a little longer.
// The client, which reads the file again for its next attempt, is told when that has ended.
func TestBodyIsReleased(t *testing.T) {
	failed := errors.New("connection reset")
	for name, early := range map[string]struct {
		response *http.Response
		err      error
	}{
		"an error":          {nil, failed},
		"an early response": {&http.Response{StatusCode: http.StatusServiceUnavailable, Body: http.NoBody}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var released atomic.Bool
				transport := bodyWaiter{roundTripper(func(r *http.Request) (*http.Response, error) {
					go func() {
						time.Sleep(time.Second)
						released.Store(true)
						r.Body.Close()
					}()
					return early.response, early.err
				})}
				r, err := http.NewRequest(http.MethodPut, "http://127.0.0.1/part", strings.NewReader("content"))
				if err != nil {
					t.Fatal(err)
				}
				res, err := transport.RoundTrip(r)
				if !errors.Is(err, early.err) {
					t.Errorf("got %v, want %v", err, early.err)
				}
				if err == nil {
					res.Body.Close()
				}
				if !released.Load() {
					t.Error("the request ended while its body was read")
				}
			})
		})
	}
}
