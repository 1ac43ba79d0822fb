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
// Clients usually send the same header fields with every request. The parsed
// fields are kept, and parsed again only if they differ in any byte.
type parser struct {
	plain   func(target string) bool
	fields  []byte       // as received
	request http.Request // the parts that depend only on fields

	target string
	url    *url.URL
}

// request holds the parts of a plain request that aren't in parser.
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

var endOfHead = []byte("\r\n\r\n")

// parse parses the first request in received and returns its size. ok is false if
// the request isn't plain, whether it is valid or not.
func (p *parser) parse(received []byte) (r request, size int, ok bool) {
	end := bytes.Index(received, endOfHead)
	if end < 0 {
		return r, 0, false
	}
	size = end + len(endOfHead)
	line, fields, _ := bytes.Cut(received[:size], []byte("\r\n"))
	line, ok = bytes.CutSuffix(line, []byte(" HTTP/1.1"))
	if !ok {
		return r, 0, false
	}
	verb, target, _ := bytes.Cut(line, []byte(" "))
	method := plainMethod(verb)
	if method == "" || !p.setTarget(target) || !p.setFields(fields) {
		return r, 0, false
	}
	if p.request.ContentLength > int64(len(received)-size) {
		return r, 0, false
	}
	body := received[size:][:p.request.ContentLength]
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

// setTarget parses a path of unreserved characters and an optional query.
func (p *parser) setTarget(target []byte) bool {
	if p.url != nil && string(target) == p.target {
		return true
	}
	path, query, hasQuery := bytes.Cut(target, []byte("?"))
	if !bytes.HasPrefix(path, []byte("/")) || bytes.HasPrefix(path, []byte("//")) ||
		!consistsOf(path, inPath) || !consistsOf(query, inQuery) || hasQuery && len(query) == 0 {
		return false
	}
	text := string(target)
	if !p.plain(text) {
		return false
	}
	p.target = text
	p.url = &url.URL{Path: text[:len(path)]}
	if hasQuery {
		p.url.RawQuery = text[len(path)+1:]
	}
	return true
}

// setFields parses the header fields up to the empty line.
func (p *parser) setFields(fields []byte) bool {
	if bytes.Equal(fields, p.fields) {
		return true
	}
	p.fields = nil
	p.request.Header, p.request.Host, p.request.ContentLength = http.Header{}, "", 0
	for rest := string(fields); rest != "\r\n"; {
		line, after, _ := strings.Cut(rest, "\r\n")
		name, value, colon := strings.Cut(line, ":")
		if !colon || name == "" || !consistsOf(name, inName) || !consistsOf(value, inValue) {
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

// setField adds a header field. It reports false for a field that changes how a
// request must be read or answered: such a request isn't plain.
func (p *parser) setField(name, value string) bool {
	header := p.request.Header
	switch name {
	case "Host":
		if value == "" || p.request.Host != "" || !consistsOf(value, inHost) {
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

// forHandler returns the request that was just parsed for the handler.
func (p *parser) forHandler(r request, ctx context.Context) *http.Request {
	hr := p.request.WithContext(ctx)
	hr.Method, hr.URL, hr.RequestURI, hr.Body = r.method, p.url, p.target, http.NoBody
	if len(r.body) > 0 {
		hr.Body = io.NopCloser(bytes.NewReader(bytes.Clone(r.body)))
	}
	return hr
}

// The characters allowed in each part of a plain request.
const (
	inPath  = 1 << iota // unreserved characters and slashes
	inName              // a token as defined by RFC 9110
	inHost              // names, addresses and ports
	inQuery             // queries
	inValue             // values of header fields
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
		allow(inQuery|inValue, string(c))
	}
	kinds['#'] &^= inQuery
	allow(inValue, " \t")
	return kinds
}()

func consistsOf[T string | []byte](text T, kind uint8) bool {
	for i := range len(text) {
		if kinds[text[i]]&kind == 0 {
			return false
		}
	}
	return true
}
