package http1

import (
	"bytes"
	"io"
	"net/http"
	"net/textproto"
	"net/url"
	"slices"
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
	parsed  []field      // the same, parsed
	values  int          // how many values parsed has
	request http.Request // the parts that depend only on fields

	target string
	url    url.URL
}

type field struct {
	name   string
	values []string
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
		TLS:        c.secured,
	}
}

var endOfHead = []byte("\r\n\r\n")

// parse parses the first request in received and returns its size. ok is false if
// the request isn't plain, whether it is valid or not.
func (p *parser) parse(received []byte) (r request, size int, ok bool) {
	line, fields, ok := p.splitHead(received)
	if !ok {
		return r, 0, false
	}
	size = len(line) + len("\r\n") + len(fields)
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

// splitHead returns the request line and the header fields up to the empty line. If
// the fields are the same as before, it doesn't search for their end.
func (p *parser) splitHead(received []byte) (line, fields []byte, ok bool) {
	if i := bytes.IndexByte(received, '\n'); i > 0 && received[i-1] == '\r' && p.fields != nil {
		if rest := received[i+1:]; bytes.HasPrefix(rest, p.fields) {
			return received[:i-1], rest[:len(p.fields)], true
		}
	}
	end := bytes.Index(received, endOfHead)
	if end < 0 {
		return nil, nil, false
	}
	line, fields, _ = bytes.Cut(received[:end+len(endOfHead)], []byte("\r\n"))
	return line, fields, true
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
	if p.target != "" && string(target) == p.target {
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
	p.url = url.URL{Path: text[:len(path)]}
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
	p.fields, p.parsed, p.values = nil, nil, 0
	p.request.Host, p.request.ContentLength = "", 0
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
	i := slices.IndexFunc(p.parsed, func(f field) bool { return f.name == name })
	switch name {
	case "Host":
		if value == "" || p.request.Host != "" || !consistsOf(value, inHost) {
			return false
		}
		p.request.Host = value
		return true
	case "Content-Length":
		n, err := strconv.ParseUint(value, 10, 31)
		if err != nil || i >= 0 {
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
	p.values++
	if i < 0 {
		p.parsed = append(p.parsed, field{name, []string{value}})
	} else {
		p.parsed[i].values = append(p.parsed[i].values, value)
	}
	return true
}

// forHandler fills in the request that was just parsed for the handler.
func (p *parser) forHandler(x *exchange, r request) {
	x.request = *p.request.WithContext(&x.context)
	x.url = p.url
	x.request.Method, x.request.URL, x.request.RequestURI = r.method, &x.url, p.target
	p.fillHeader(x)
	x.request.Body = http.NoBody
	if len(r.body) > 0 {
		x.request.Body = io.NopCloser(bytes.NewReader(bytes.Clone(r.body)))
	}
}

// fillHeader gives the request a header that shares no memory with those of others. A
// large one isn't kept for another request, which would pay for its size.
func (p *parser) fillHeader(x *exchange) {
	header, room := x.header, x.values[:0]
	switch {
	case p.values > len(x.values):
		header, room = make(http.Header, len(p.parsed)), make([]string, 0, p.values)
	case header == nil:
		header = make(http.Header, len(x.values))
		x.header = header
	}
	for i := range p.parsed {
		f := &p.parsed[i]
		start := len(room)
		room = append(room, f.values...)
		header[f.name] = room[start:len(room):len(room)]
	}
	x.request.Header = header
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
