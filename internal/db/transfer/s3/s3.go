// Package s3 keeps backups in a bucket of an S3-compatible service.
package s3

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"animalstore/internal/db/transfer"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
	"github.com/minio/minio-go/v7/pkg/s3utils"
)

const scheme = "s3://"

// Is reports whether an address is one of a bucket, and not a path. It may be misspelled, such
// as s3:/BUCKET: nobody means a file with that name.
func Is(address string) bool {
	return strings.Contains(address, "://") || strings.HasPrefix(strings.ToLower(address), "s3:")
}

// Address is the place of backups in a bucket, or the name of one of them.
type Address struct {
	Bucket string
	Prefix string // without slashes at its ends; may be ""
}

// ParseAddress parses s3://BUCKET or s3://BUCKET/PREFIX.
func ParseAddress(address string) (Address, error) {
	rest, ok := strings.CutPrefix(address, scheme)
	bucket, prefix, _ := strings.Cut(rest, "/")
	prefix = strings.Trim(prefix, "/")
	if !ok || s3utils.CheckValidBucketName(bucket) != nil || path.Clean("/"+prefix) != "/"+prefix {
		return Address{}, fmt.Errorf("must be s3://BUCKET or s3://BUCKET/PREFIX, not %q", address)
	}
	return Address{bucket, prefix}, nil
}

// Snapshot splits the address of a single backup into its place and name. ok is false if
// the address is that of a place.
func (a Address) Snapshot() (place Address, name string, ok bool) {
	name = path.Base(a.Prefix)
	if _, ok := transfer.ParseSnapshot(name); !ok {
		return a, "", false
	}
	dir := path.Dir(a.Prefix)
	if dir == "." {
		dir = ""
	}
	return Address{a.Bucket, dir}, name, true
}

// Of returns the address of a file in the place.
func (a Address) Of(name string) string { return scheme + path.Join(a.Bucket, a.Prefix, name) }

func (a Address) String() string { return scheme + path.Join(a.Bucket, a.Prefix) }

// key returns the key of a file's object.
func (a Address) key(name string) string { return path.Join(a.Prefix, name) }

// Config is how to reach a service. Only credentials are required.
type Config struct {
	Endpoint        string // URL of the service; "" means Amazon's
	Region          string // "" means us-east-1
	AddressingStyle string // "path" or "virtual", where the bucket is in the host name; "" depends on the endpoint
	AccessKey       string
	SecretKey       string
	SessionToken    string
	CredentialsFile string        // of the AWS command line; used if AccessKey is ""
	Profile         string        // in CredentialsFile; "" means default
	Stall           time.Duration // how long a connection may make no progress; 0 means 90 seconds
}

// Bucket implements [transfer.Remote].
type Bucket struct {
	Address
	client *minio.Client
}

// New returns a bucket. It doesn't connect yet. Its errors are about the endpoint.
func New(address Address, c Config) (*Bucket, error) {
	host, secure := "s3.amazonaws.com", true
	if c.Endpoint != "" {
		var err error
		if host, secure, err = parseEndpoint(c.Endpoint); err != nil {
			return nil, err
		}
	}
	signer := credentials.NewStaticV4(c.AccessKey, c.SecretKey, c.SessionToken)
	if c.AccessKey == "" {
		signer = credentials.NewFileAWSCredentials(c.CredentialsFile, c.Profile)
	}
	if c.Region == "" {
		c.Region = "us-east-1"
	}
	if c.Stall == 0 {
		c.Stall = 90 * time.Second
	}
	lookup := map[string]minio.BucketLookupType{"path": minio.BucketLookupPath, "virtual": minio.BucketLookupDNS}[c.AddressingStyle]
	client, err := minio.New(host, &minio.Options{
		Creds: signer, Secure: secure, Region: c.Region, BucketLookup: lookup,
		Transport: newTransport(c.Stall), MaxRetries: 3,
	})
	if err != nil {
		return nil, err
	}
	return &Bucket{address, client}, nil
}

// parseEndpoint returns the host of an endpoint. Without TLS, everyone in between could read
// the backups, so it is for this machine only.
func parseEndpoint(endpoint string) (host string, secure bool, err error) {
	u, err := url.Parse(endpoint)
	if err != nil || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" || u.Path != "" && u.Path != "/" {
		return "", false, errors.New("must be a URL such as https://s3.example.com")
	}
	ip, err := netip.ParseAddr(u.Hostname())
	loopback := err == nil && ip.IsLoopback() || u.Hostname() == "localhost"
	if u.Scheme != "https" && (u.Scheme != "http" || !loopback) {
		return "", false, errors.New("must begin with https://, unless it is on this machine")
	}
	return u.Host, u.Scheme == "https", nil
}

// newTransport returns a transport whose connections fail when they make no progress.
func newTransport(stall time.Duration) http.RoundTripper {
	dialer := &net.Dialer{Timeout: 10 * time.Second}
	return bodyWaiter{&http.Transport{
		Proxy: http.ProxyFromEnvironment,
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, err
			}
			return &stallConn{conn, stall}, nil
		},
		TLSHandshakeTimeout: 10 * time.Second,
		IdleConnTimeout:     stall,
		DisableCompression:  true,
	}}
}

// bodyWaiter makes a failed request end only when its body isn't read any more, because the
// client then reads the same part of the file again.
type bodyWaiter struct{ http.RoundTripper }

func (t bodyWaiter) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		return t.RoundTripper.RoundTrip(r)
	}
	unread := make(chan struct{})
	r = r.Clone(r.Context())
	r.Body = &closeFunc{r.Body, sync.OnceFunc(func() { close(unread) })}
	res, err := t.RoundTripper.RoundTrip(r)
	if err != nil {
		<-unread
		return nil, err
	}
	res.Body = &closeFunc{res.Body, func() { <-unread }}
	return res, nil
}

// closeFunc calls a function after Close.
type closeFunc struct {
	io.ReadCloser
	closed func()
}

func (c *closeFunc) Close() error {
	err := c.ReadCloser.Close()
	c.closed()
	return err
}

// stallConn fails reads and writes when neither made progress for a while.
type stallConn struct {
	net.Conn
	stall time.Duration
}

func (c *stallConn) Read(p []byte) (int, error) {
	c.SetDeadline(time.Now().Add(c.stall))
	return c.Conn.Read(p)
}

func (c *stallConn) Write(p []byte) (int, error) {
	c.SetDeadline(time.Now().Add(c.stall)) // also of a read that waits for the response
	return c.Conn.Write(p)
}

// List implements [transfer.Place].
func (b *Bucket) List(ctx context.Context) ([]transfer.File, error) {
	prefix := b.directory()
	var files []transfer.File
	for o := range b.client.ListObjects(ctx, b.Bucket, minio.ListObjectsOptions{Prefix: prefix}) {
		if o.Err != nil {
			return nil, b.explain(o.Err)
		}
		if name := strings.TrimPrefix(o.Key, prefix); !strings.Contains(name, "/") {
			files = append(files, transfer.File{Name: name, Size: o.Size})
		}
	}
	return files, ctx.Err()
}

// directory returns the prefix of the keys in the place.
func (b *Bucket) directory() string {
	if b.Prefix == "" {
		return ""
	}
	return b.Prefix + "/"
}

// Put implements [transfer.Remote]. Large files are sent in parts, straight from the disk.
func (b *Bucket) Put(ctx context.Context, name, file string, progress func(int64)) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	opts := minio.PutObjectOptions{ContentType: "application/vnd.sqlite3", NumThreads: 2}
	if progress != nil {
		opts.Progress = &sent{show: progress}
	}
	// As a ReaderAt that isn't a file, it is neither closed nor read into memory.
	content := io.NewSectionReader(f, 0, info.Size())
	_, err = b.client.PutObject(ctx, b.Bucket, b.key(name), content, info.Size(), opts)
	// An upload is gone if it was completed, but the response was lost and it was sent again.
	if err != nil && !isGone(err) {
		return b.explain(err)
	}
	return b.verify(ctx, name, info.Size())
}

// verify fails unless a file has this size. It needs no permission that List doesn't.
func (b *Bucket) verify(ctx context.Context, name string, size int64) error {
	files, err := b.List(ctx)
	if err != nil {
		return err
	}
	for _, f := range files {
		if f.Name == name && f.Size == size {
			return nil
		}
	}
	return fmt.Errorf("%s doesn't have %s with %d bytes after its upload", b.client.EndpointURL().Host, b.key(name), size)
}

// sent counts the bytes that are sent, which the client "reads" from it.
type sent struct {
	mu   sync.Mutex // several parts are sent at the same time
	n    int64
	show func(int64)
}

func (s *sent) Read(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n += int64(len(p))
	s.show(s.n)
	return len(p), nil
}

// Open implements [transfer.Remote].
func (b *Bucket) Open(ctx context.Context, name string, at int64, version string) (transfer.Content, error) {
	var opts minio.GetObjectOptions
	continued := at > 0 && version != ""
	if continued {
		opts.Set("Range", fmt.Sprintf("bytes=%d-", at))
		opts.Set("If-Match", version)
	}
	body, info, header, err := minio.Core{Client: b.client}.GetObject(ctx, b.Bucket, b.key(name), opts)
	if code := minio.ToErrorResponse(err).Code; continued && (code == minio.PreconditionFailed || code == minio.InvalidRange) {
		return b.Open(ctx, name, 0, "") // another file has this name now
	}
	if err != nil {
		return transfer.Content{}, b.explain(err)
	}
	content := transfer.Content{ReadCloser: body, Size: info.Size, Version: header.Get("ETag")}
	switch part := header.Get("Content-Range"); {
	case info.Size < 0:
		body.Close()
		return transfer.Content{}, fmt.Errorf("%s doesn't say how large %s is", b.client.EndpointURL().Host, b.key(name))
	case part == "" || !continued: // all of it
		return content, nil
	case strings.HasPrefix(part, fmt.Sprintf("bytes %d-", at)) && content.Version == version:
		content.At, content.Size = at, at+info.Size
		return content, nil
	}
	body.Close()
	return b.Open(ctx, name, 0, "")
}

// Delete implements [transfer.Place].
func (b *Bucket) Delete(ctx context.Context, name string) error {
	return b.explain(b.client.RemoveObject(ctx, b.Bucket, b.key(name), minio.RemoveObjectOptions{}))
}

// Unfinished implements [transfer.Remote].
func (b *Bucket) Unfinished(ctx context.Context) ([]string, error) {
	prefix := b.directory()
	var names []string
	for u := range b.client.ListIncompleteUploads(ctx, b.Bucket, prefix, true) {
		if u.Err != nil {
			return nil, b.explain(u.Err)
		}
		if name := strings.TrimPrefix(u.Key, prefix); !strings.Contains(name, "/") {
			names = append(names, name)
		}
	}
	return names, ctx.Err()
}

// Abort implements [transfer.Remote].
func (b *Bucket) Abort(ctx context.Context, name string) error {
	if err := b.client.RemoveIncompleteUpload(ctx, b.Bucket, b.key(name)); !isGone(err) {
		return b.explain(err)
	}
	return nil
}

// isGone reports whether an error means that an upload was completed or aborted.
func isGone(err error) bool { return minio.ToErrorResponse(err).Code == minio.NoSuchUpload }

// ErrNotFound means that a bucket, or a file in it, doesn't exist.
var ErrNotFound = errors.New("does not exist")

// explain adds the code of the service to its message, which is sometimes empty. Of a request
// that failed, it leaves out the long URL.
func (b *Bucket) explain(err error) error {
	var failed minio.ErrorResponse
	var request *url.Error
	switch {
	case errors.As(err, &request):
		return fmt.Errorf("%s: %w", b.client.EndpointURL().Host, request.Err)
	case !errors.As(err, &failed):
		return err
	case failed.Code == minio.NoSuchBucket:
		return fmt.Errorf("the bucket %s %w", b.Bucket, ErrNotFound)
	case failed.Code == minio.NoSuchKey:
		return fmt.Errorf("%s%s %w", scheme, path.Join(b.Bucket, failed.Key), ErrNotFound)
	}
	failed.Message = strings.TrimSuffix(failed.Error(), ".") // a sentence may follow
	return fmt.Errorf("%s responded %d %s: %w", b.client.EndpointURL().Host, failed.StatusCode, failed.Code, failed)
}
