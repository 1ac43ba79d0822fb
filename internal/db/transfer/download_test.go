package transfer

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"testing/iotest"
	"testing/synctest"
)

// brokenRemote is a remote place with one file, whose connections break.
type brokenRemote struct {
	*memoryRemote
	content   []byte
	breaks    []int // after how many bytes each connection breaks; the last is for all others
	restarts  bool  // it always begins at 0
	replaceAt int   // the connection from which on it has another file
	asked     []int64
}

func (r *brokenRemote) Open(_ context.Context, _ string, at int64, version string) (Content, error) {
	n := len(r.asked)
	r.asked = append(r.asked, at)
	now := "1"
	if r.replaceAt > 0 && n >= r.replaceAt {
		now = "2"
		r.content = bytes.ToUpper(r.content)
	}
	if r.restarts || version != now {
		at = 0
	}
	rest := r.content[at:]
	breaks := min(r.breaks[min(n, len(r.breaks)-1)], len(rest))
	end := io.EOF
	if breaks < len(rest) {
		end = errors.New("connection reset")
	}
	broken := io.MultiReader(bytes.NewReader(rest[:breaks]), iotest.ErrReader(end))
	return Content{ReadCloser: io.NopCloser(broken), At: at, Size: int64(len(r.content)), Version: now}, nil
}

// TestDownload: a download continues where a connection broke, as long as it makes progress.
// It begins again, and says so, if the place can't continue or has another file now.
func TestDownload(t *testing.T) {
	content := []byte("all the animals of the store")
	for name, test := range map[string]struct {
		remote    brokenRemote
		asked     []int64
		restarted int
		fails     bool
	}{
		"whole":                     {brokenRemote{breaks: []int{99}}, []int64{0}, 0, false},
		"broken":                    {brokenRemote{breaks: []int{5, 5, 99}}, []int64{0, 5, 10}, 0, false},
		"broken often":              {brokenRemote{breaks: []int{0, 0, 3, 0, 0, 3, 0, 0, 99}}, []int64{0, 0, 0, 3, 3, 3, 6, 6, 6}, 0, false},
		"broken for ever":           {brokenRemote{breaks: []int{5, 0}}, []int64{0, 5, 5, 5}, 0, true},
		"not continued":             {brokenRemote{breaks: []int{5, 99}, restarts: true}, []int64{0, 5}, 1, false},
		"not continued, and broken": {brokenRemote{breaks: []int{5}, restarts: true}, []int64{0, 5, 5, 5}, 3, true},
		"replaced":                  {brokenRemote{breaks: []int{5, 99}, replaceAt: 1}, []int64{0, 5}, 1, false},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "download")
			synctest.Test(t, func(t *testing.T) {
				f, err := os.Create(path)
				if err != nil {
					t.Fatal(err)
				}
				defer f.Close()
				remote, restarted := &test.remote, 0
				remote.content = bytes.Clone(content)
				d := Download{Place: remote, File: File{"copy.db", int64(len(content))}, Progress: func(int64) {}, Restarted: func() { restarted++ }}
				err = d.receive(t.Context(), f)
				if (err != nil) != test.fails || !slices.Equal(remote.asked, test.asked) || restarted != test.restarted {
					t.Errorf("got %v, connections from %d, %d restarts, want %d, %d", err, remote.asked, restarted, test.asked, test.restarted)
				}
				if got, _ := os.ReadFile(path); err == nil && !bytes.Equal(got, remote.content) {
					t.Errorf("got %q, want %q", got, remote.content)
				}
			})
		})
	}
}

// TestDownloadToFullDisk: a download that can't be stored isn't tried again.
func TestDownloadToFullDisk(t *testing.T) {
	f, err := os.Open(os.DevNull) // can't be written
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	remote := &brokenRemote{content: []byte("animals"), breaks: []int{99}}
	d := Download{Place: remote, File: File{"copy.db", 7}, Progress: func(int64) {}, Restarted: func() {}}
	if err := d.receive(t.Context(), f); err == nil || len(remote.asked) != 1 {
		t.Errorf("got %v after %d connections, want an error after one", err, len(remote.asked))
	}
}
