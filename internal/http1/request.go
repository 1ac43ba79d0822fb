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
// Clients usually send the same header fields with every request, or all but one. The
// lines are kept, and one is parsed again only if it differs in any byte.
type parser struct {
	plain    func(target string) bool
	lines    []line       // the header fields of the last request
	repeated bool         // two of them have the same name
	request  http.Request // the parts that depend only on lines

	target string
	url    url.URL
}

// line is a line with a header field.
type line struct {
	text        string // as received, including its end
	name, value string
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

var endOfLine = []byte("\r\n")

// parse parses the first request in received and returns its size. ok is false if
// the request isn't plain, whether it is valid or not.
func (p *parser) parse(received []byte) (r request, size int, ok bool) {
	size = sizeOfLine(received)
	if size == 0 {
		return r, 0, false
	}
	line, ok := bytes.CutSuffix(received[:size], []byte(" HTTP/1.1\r\n"))
	if !ok {
		return r, 0, false
	}
	verb, target, _ := bytes.Cut(line, []byte(" "))
	method := plainMethod(verb)
	if method == "" || !p.setTarget(target) {
		return r, 0, false
	}
	fields, ok := p.setFields(received[size:])
	if !ok {
		return r, 0, false
	}
	size += fields
	if p.request.ContentLength > int64(len(received)-size) {
		return r, 0, false
	}
	body := received[size:][:p.request.ContentLength]
	return request{method, body}, size + len(body), true
}

// sizeOfLine returns the size of the first line, including its end. It is 0 if the line
// isn't complete or doesn't end as it should.
func sizeOfLine(received []byte) int {
	end := bytes.IndexByte(received, '\n')
	if end < 1 || received[end-1] != '\r' {
		return 0
	}
	return end + 1
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

// setFields parses the header fields and returns their size, including the empty line
// after them.
func (p *parser) setFields(received []byte) (size int, ok bool) {
	changed, n := false, 0
	for ; !bytes.HasPrefix(received[size:], endOfLine); n++ {
		rest := received[size:]
		if n < len(p.lines) {
			if text := p.lines[n].text; len(rest) >= len(text) && string(rest[:len(text)]) == text {
				size += len(text)
				continue
			}
		} else {
			p.lines = append(p.lines, line{})
		}
		if !p.lines[n].parse(rest) {
			return 0, false
		}
		changed = true
		size += len(p.lines[n].text)
	}
	if changed || n < len(p.lines) {
		p.lines = p.lines[:n]
		ok = p.checkFields()
	} else {
		ok = n > 0 // they were checked before
	}
	return size + len(endOfLine), ok
}

// parse parses the first line of received.
func (l *line) parse(received []byte) bool {
	text := string(received[:sizeOfLine(received)])
	name, value, colon := strings.Cut(strings.TrimSuffix(text, "\r\n"), ":")
	if !colon || name == "" || !consistsOf(name, inName) || !consistsOf(value, inValue) {
		return false
	}
	*l = line{text, textproto.CanonicalMIMEHeaderKey(name), strings.Trim(value, " \t")}
	return true
}

// checkFields reports whether a request with these header fields is plain. It isn't if
// one of them changes how the request must be read or answered.
func (p *parser) checkFields() bool {
	p.request.Host, p.request.ContentLength, p.repeated = "", 0, false
	for i := range p.lines {
		f := &p.lines[i]
		repeated := slices.ContainsFunc(p.lines[:i], func(other line) bool { return other.name == f.name })
		switch f.name {
		case "Host":
			if f.value == "" || repeated || !consistsOf(f.value, inHost) {
				return false
			}
			p.request.Host = f.value
		case "Content-Length":
			n, err := strconv.ParseUint(f.value, 10, 31)
			if err != nil || repeated {
				return false
			}
			p.request.ContentLength = int64(n)
		case "Connection":
			if !strings.EqualFold(f.value, "keep-alive") {
				return false
			}
		case "Expect", "Pragma", "Trailer", "Transfer-Encoding", "Upgrade":
			return false
		}
		p.repeated = p.repeated || repeated
	}
	return p.request.Host != ""
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
	values := len(p.lines) - 1 // all but Host
	switch {
	case values > len(x.values):
		header, room = make(http.Header, values), make([]string, 0, values)
	case header == nil:
		header = make(http.Header, len(x.values))
		x.header = header
	}
	for i := range p.lines {
		f := &p.lines[i]
		switch {
		case f.name == "Host":
		case p.repeated && header[f.name] != nil:
			header[f.name] = append(header[f.name], f.value)
		default:
			room = append(room, f.value)
			header[f.name] = room[len(room)-1 : len(room) : len(room)]
		}
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
