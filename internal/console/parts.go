package console

import (
	"io"
	"mime/multipart"
	"net/http"
)

// parts are those of a form with files. Only files may be large: what precedes a part is
// kept in memory.
type parts struct {
	form *multipart.Reader
	body *io.LimitedReader
	part *multipart.Part // the last one
}

// readParts returns the parts of the form in a request.
func readParts(r *http.Request) (*parts, error) {
	body := &io.LimitedReader{R: r.Body, N: maxPartHeader}
	r.Body = struct {
		io.Reader
		io.Closer
	}{body, r.Body}
	form, err := r.MultipartReader()
	return &parts{form: form, body: body}, err
}

// next returns the next part, and skips what wasn't read of the one before. The error is
// io.EOF after the last one.
func (p *parts) next() (part *multipart.Part, err error) {
	if p.part != nil {
		p.part.Close() // isn't limited like the header of the next one
	}
	p.body.N = maxPartHeader
	p.part, err = p.form.NextPart()
	if err == io.EOF && p.body.N <= 0 {
		err = io.ErrUnexpectedEOF
	}
	p.body.N = maxUpload
	return p.part, err
}
