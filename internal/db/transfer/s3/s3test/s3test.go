// Package s3test is the part of an S3 service that backups need, in memory, with failures on
// demand. It is quick to start; the tests of a soak use a real service.
package s3test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/xml"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// The only credentials and bucket of a [Server].
const (
	AccessKey = "AKIDTEST"
	SecretKey = "secret-of-the-stand-in"
	Bucket    = "acme-backups"
)

// Server is a running service.
type Server struct {
	URL string

	// Fail is called with each request before it is handled. If it returns true, it has
	// responded, or ended the connection. Set it before the first request.
	Fail func(w http.ResponseWriter, r *http.Request) bool

	mu      sync.Mutex
	objects map[string][]byte
	uploads map[string]*upload // by id
	made    int
}

type upload struct {
	key   string
	parts map[int][]byte
}

// Start starts a service, until the test ends.
func Start(t testing.TB) *Server {
	t.Helper()
	s := &Server{objects: map[string][]byte{}, uploads: map[string]*upload{}}
	server := httptest.NewServer(s)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	s.URL = server.URL
	return s
}

// Keys returns the keys of all objects, sorted.
func (s *Server) Keys() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.objects))
}

// Set stores an object.
func (s *Server) Set(key string, content []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[key] = content
}

// Get returns an object's content.
func (s *Server) Get(key string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[key]
}

// Begin begins an upload that nobody completes.
func (s *Server) Begin(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin(key)
}

func (s *Server) begin(key string) (id string) {
	s.made++
	id = fmt.Sprint("upload-", s.made)
	s.uploads[id] = &upload{key, map[int][]byte{}}
	return id
}

// Unfinished returns the keys of uploads that were not completed, sorted.
func (s *Server) Unfinished() (keys []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, u := range s.uploads {
		keys = append(keys, u.key)
	}
	slices.Sort(keys)
	return keys
}

// Respond responds with an error of S3.
func Respond(w http.ResponseWriter, status int, code string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, "<Error><Code>%s</Code><Message>Of the stand-in.</Message></Error>", code)
}

func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if s.Fail != nil && s.Fail(w, r) {
		return
	}
	bucket, key, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case !strings.Contains(r.Header.Get("Authorization"), "Credential="+AccessKey+"/"):
		Respond(w, http.StatusForbidden, "InvalidAccessKeyId")
		return
	case bucket != Bucket:
		Respond(w, http.StatusNotFound, "NoSuchBucket")
		return
	}
	body, err := readBody(r)
	if err != nil {
		return // the client is gone
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if q := r.URL.Query(); key == "" {
		s.list(w, q.Get("prefix"), q.Has("uploads"))
	} else if q.Has("uploads") || q.Has("uploadId") {
		s.handleUpload(w, r, key, body)
	} else {
		s.handleObject(w, r, key, body)
	}
}

func (s *Server) handleUpload(w http.ResponseWriter, r *http.Request, key string, body []byte) {
	q := r.URL.Query()
	if q.Has("uploads") {
		fmt.Fprintf(w, "<InitiateMultipartUploadResult><UploadId>%s</UploadId></InitiateMultipartUploadResult>", s.begin(key))
		return
	}
	id := q.Get("uploadId")
	u := s.uploads[id]
	if u == nil {
		Respond(w, http.StatusNotFound, "NoSuchUpload")
		return
	}
	switch r.Method {
	case http.MethodPut:
		n, _ := strconv.Atoi(q.Get("partNumber"))
		u.parts[n] = body
		w.Header().Set("ETag", `"part"`)
	case http.MethodDelete:
		delete(s.uploads, id)
		w.WriteHeader(http.StatusNoContent)
	case http.MethodPost:
		var complete struct{ Part []struct{ PartNumber int } }
		if err := xml.Unmarshal(body, &complete); err != nil {
			Respond(w, http.StatusBadRequest, "MalformedXML")
			return
		}
		var content []byte
		for _, part := range complete.Part {
			if u.parts[part.PartNumber] == nil {
				Respond(w, http.StatusBadRequest, "InvalidPart")
				return
			}
			content = append(content, u.parts[part.PartNumber]...)
		}
		s.objects[key] = content
		delete(s.uploads, id)
		fmt.Fprintf(w, "<CompleteMultipartUploadResult><Bucket>%s</Bucket><ETag>whole</ETag></CompleteMultipartUploadResult>", Bucket)
	}
}

func (s *Server) handleObject(w http.ResponseWriter, r *http.Request, key string, body []byte) {
	content, ok := s.objects[key]
	switch {
	case r.Method == http.MethodPut:
		s.objects[key] = body
		w.Header().Set("ETag", `"whole"`)
	case r.Method == http.MethodDelete:
		delete(s.objects, key)
		w.WriteHeader(http.StatusNoContent)
	case !ok:
		Respond(w, http.StatusNotFound, "NoSuchKey")
	default:
		w.Header().Set("ETag", fmt.Sprintf(`"%x"`, sha256.Sum256(content)))
		http.ServeContent(w, r, "", time.Unix(1e9, 0), bytes.NewReader(content))
	}
}

// list lists the objects or unfinished uploads whose keys have a prefix.
func (s *Server) list(w http.ResponseWriter, prefix string, uploads bool) {
	type entry struct {
		Key          string
		UploadID     string `xml:"UploadId,omitempty"`
		Size         int
		LastModified string
		Initiated    string
	}
	const at = "2026-11-15T09:00:00.000Z"
	var result struct {
		XMLName     xml.Name
		IsTruncated bool
		Contents    []entry
		Upload      []entry
	}
	result.XMLName.Local = "ListBucketResult"
	if uploads {
		result.XMLName.Local = "ListMultipartUploadsResult"
		for id, u := range s.uploads {
			if strings.HasPrefix(u.key, prefix) {
				result.Upload = append(result.Upload, entry{Key: u.key, UploadID: id, LastModified: at, Initiated: at})
			}
		}
	} else {
		for key, content := range s.objects {
			if strings.HasPrefix(key, prefix) {
				result.Contents = append(result.Contents, entry{Key: key, Size: len(content), LastModified: at, Initiated: at})
			}
		}
	}
	w.Header().Set("Content-Type", "application/xml")
	xml.NewEncoder(w).Encode(result)
}

// readBody reads a body, which is signed in chunks if the connection isn't encrypted: the size
// in hexadecimal and a signature in one line, and then the data.
func readBody(r *http.Request) ([]byte, error) {
	if !strings.HasPrefix(r.Header.Get("X-Amz-Content-Sha256"), "STREAMING-") {
		return io.ReadAll(r.Body)
	}
	var body []byte
	for in := bufio.NewReader(r.Body); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			return nil, err
		}
		digits, _, _ := strings.Cut(line, ";")
		size, err := strconv.ParseInt(digits, 16, 64)
		if err != nil || size == 0 {
			return body, err
		}
		chunk := make([]byte, size+2) // and the end of the line
		if _, err := io.ReadFull(in, chunk); err != nil {
			return nil, err
		}
		body = append(body, chunk[:size]...)
	}
}
