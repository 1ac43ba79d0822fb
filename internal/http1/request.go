package http1

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
)

// parser reads the heads of the plain requests on one connection.
//
// A client sends the same header fields with one request as with the one before,
// more often than not. What they say is kept, and read again only if they differ
// in any byte.
type parser struct {
	plain   func(target string) bool
	fields  []byte       // as they were sent
	request http.Request // what is the same for the same fields

	target string
	url    *url.URL
}

// request is what a plain request has to itself, target and fields aside.
type request struct {
	method string
	body   []byte
}

func (p *parser) init(c *conn) {
	p.plain = c.listener.plain
	p.request = http.Request{
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
		RemoteAddr: c.RemoteAddr().String(),
	}
}

var headEnd = []byte("\r\n\r\n")

// parse reads the request that came first of all that came, and returns its size.
// Not ok is one that is not plain, be it good or bad.
func (p *parser) parse(came []byte) (r request, size int, ok bool) {
	end := bytes.Index(came, headEnd)
	if end < 0 {
		return r, 0, false
	}
	size = end + len(headEnd)
	line, fields, _ := bytes.Cut(came[:size], []byte("\r\n"))
	line, ok = bytes.CutSuffix(line, []byte(" HTTP/1.1"))
	if !ok {
		return r, 0, false
	}
	verb, target, _ := bytes.Cut(line, []byte(" "))
	method := plainMethod(verb)
	if method == "" || !p.setTarget(target) || !p.setFields(fields) {
		return r, 0, false
	}
	if p.request.ContentLength > int64(len(came)-size) {
		return r, 0, false
	}
	body := came[size:][:p.request.ContentLength]
	return request{method, body}, size + len(body), true
}

func plainMethod(verb []byte) string {
	switch string(verb) {
	case http.MethodGet:
		return http.MethodGet
	case http.MethodHead:
		return http.MethodHead
	case http.MethodPost:
		return http.MethodPost
	case http.MethodPut:
		return http.MethodPut
	case http.MethodPatch:
		return http.MethodPatch
	case http.MethodDelete:
		return http.MethodDelete
	}
	return ""
}

// setTarget reads a path of unreserved characters, and a query.
func (p *parser) setTarget(target []byte) bool {
	if p.url != nil && string(target) == p.target {
		return true
	}
	path, query, asked := bytes.Cut(target, []byte("?"))
	if !bytes.HasPrefix(path, []byte("/")) || bytes.HasPrefix(path, []byte("//")) ||
		!all(path, inPath) || !all(query, visible) || asked && len(query) == 0 {
		return false
	}
	text := string(target)
	if !p.plain(text) {
		return false
	}
	p.target = text
	p.url = &url.URL{Path: text[:len(path)]}
	if asked {
		p.url.RawQuery = text[len(path)+1:]
	}
	return true
}

// setFields reads the header fields, to the empty line.
func (p *parser) setFields(fields []byte) bool {
	if bytes.Equal(fields, p.fields) {
		return true
	}
	p.fields = nil
	p.request.Header, p.request.Host, p.request.ContentLength = http.Header{}, "", 0
	for rest := string(fields); rest != "\r\n"; {
		line, after, _ := strings.Cut(rest, "\r\n")
		name, value, colon := strings.Cut(line, ":")
		if !colon || name == "" || !all(name, inName) || !all(value, inValue) {
			return false
		}
		if !p.setField(textproto.CanonicalMIMEHeaderKey(name), strings.Trim(value, " \t")) {
			return false
		}
		rest = after
	}
	if p.request.Host == "" {
		return false
	}
	p.fields = bytes.Clone(fields)
	return true
}

// setField takes a field in. Those that change what a request is are not for
// plain ones.
func (p *parser) setField(name, value string) bool {
	header := p.request.Header
	switch name {
	case "Host":
		if value == "" || p.request.Host != "" || !all(value, inHost) {
			return false
		}
		p.request.Host = value
		return true
	case "Content-Length":
		n, err := strconv.ParseUint(value, 10, 31)
		if err != nil || header[name] != nil {
			return false
		}
		p.request.ContentLength = int64(n)
	case "Connection":
		if !strings.EqualFold(value, "keep-alive") {
			return false
		}
	case "Expect", "Pragma", "Trailer", "Transfer-Encoding", "Upgrade":
		return false
	}
	header[name] = append(header[name], value)
	return true
}

// forHandler is a request, which was parsed just now, as a handler gets it.
func (p *parser) forHandler(r request, ctx context.Context) *http.Request {
	hr := p.request.WithContext(ctx)
	hr.Method, hr.URL, hr.RequestURI, hr.Body = r.method, p.url, p.target, http.NoBody
	if len(r.body) > 0 {
		hr.Body = io.NopCloser(bytes.NewReader(bytes.Clone(r.body)))
	}
	return hr
}

// What the parts of a plain request may be made of.
const (
	inPath  = 1 << iota // unreserved characters and slashes
	inName              // what RFC 9110 calls a token
	inHost              // of names, addresses and ports
	visible             // in a query
	inValue             // in that of a header field
)

var kinds = func() (kinds [256]uint8) {
	allow := func(kind uint8, chars string) {
		for _, c := range []byte(chars) {
			kinds[c] |= kind
		}
	}
	const alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	allow(inPath, alphanumeric+"-._~/")
	allow(inName, alphanumeric+"!#$%&'*+-.^_`|~")
	allow(inHost, alphanumeric+"-._:[]")
	for c := '!'; c <= '~'; c++ {
		allow(visible|inValue, string(c))
	}
	kinds['#'] &^= visible
	allow(inValue, " \t")
	return kinds
}()

func all[T string | []byte](text T, kind uint8) bool {
	for i := range len(text) {
		if kinds[text[i]]&kind == 0 {
			return false
		}
	}
	return true
}
