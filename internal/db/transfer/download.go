package transfer

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"animalstore/internal/db"
)

// Download is a backup in a remote place.
type Download struct {
	Place Remote
	File
	Progress  func(received int64)
	Restarted func() // called when the download begins again from the start
}

// fetch downloads the backup into a new file, which the caller has to close. It never gets
// its name, so close removes it.
func (d *Download) fetch(ctx context.Context, path string) (*newFile, error) {
	if free, known := freeSpace(filepath.Dir(path)); known && free < 2*d.Size {
		return nil, fmt.Errorf("%w: the download and the store need %d MB, and the disk of %s has %d MB left", db.ErrFull, 2*d.Size>>20+1, path, free>>20)
	}
	f, err := createNew(path)
	if err != nil {
		return nil, err
	}
	if err := d.receive(ctx, f.file); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

// A download ends after this many connections in a row without progress. A part of an
// upload is sent as often.
const downloadAttempts = 3

// downloadRetry is the wait before a connection if the one before it made no progress.
const downloadRetry = 200 * time.Millisecond

// receive downloads the backup into an empty file. It continues where a connection broke.
func (d *Download) receive(ctx context.Context, to *os.File) error {
	r := receiving{Download: d, to: to}
	var most int64 // that was ever received
	for failed := 0; ; {
		done, err := r.connect(ctx)
		if done {
			return err
		}
		if failed++; r.at > most {
			most, failed = r.at, 0
		}
		if failed == downloadAttempts {
			return r.explain(err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Duration(failed) * downloadRetry):
		}
	}
}

// receiving is a download into a file.
type receiving struct {
	*Download
	to      *os.File
	at      int64 // how much of the file is there
	size    int64
	version string
}

// connect receives what one connection delivers. The download is done when it is complete, or
// when another connection wouldn't help.
func (r *receiving) connect(ctx context.Context) (done bool, err error) {
	content, err := r.Place.Open(ctx, r.Name, r.at, r.version)
	if err != nil { // which the place has tried several times
		return true, r.explain(err)
	}
	defer content.Close()
	if content.At != r.at {
		r.Restarted()
		if err := r.to.Truncate(0); err != nil {
			return true, err
		}
	}
	r.at, r.size, r.version = content.At, content.Size, content.Version
	from := &meter{r: content, n: r.at, show: r.Progress}
	n, err := io.Copy(io.NewOffsetWriter(r.to, r.at), from)
	r.at += n
	switch {
	case ctx.Err() != nil:
		return true, ctx.Err()
	case err != nil && from.err == nil: // the disk failed
		return true, err
	case err == nil && r.at == r.size:
		return true, nil
	}
	return false, err
}

// explain says how far the download came.
func (r *receiving) explain(err error) error {
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	if r.at == 0 {
		return fmt.Errorf("%s: %w", r.Name, err)
	}
	return fmt.Errorf("%s: received %d bytes of %d: %w", r.Name, r.at, r.size, err)
}

// meter reports how much is read through it, and keeps the error.
type meter struct {
	r    io.Reader
	n    int64
	show func(int64)
	err  error
}

func (m *meter) Read(p []byte) (int, error) {
	n, err := m.r.Read(p)
	m.n += int64(n)
	m.show(m.n)
	if err != io.EOF {
		m.err = err
	}
	return n, err
}
