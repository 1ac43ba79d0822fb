package http1

import (
	"bytes"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"strings"
)

// parse parses the head of the first request in received, which may be followed by a
// body and further requests, and returns its size. ok is false if the request isn't
// simple, valid or not. The parsed request shares no memory with other requests.
func parse(received []byte, serves func(target string) bool) (r http.Request, size int, ok bool) {
	end := bytes.Index(received, []byte("\r\n\r\n"))
	if end < 0 {
		return r, 0, false
	}
	line, fields, _ := strings.Cut(string(received[:end+2]), "\r\n")
	line, ok = strings.CutSuffix(line, " HTTP/1.1")
	method, target, _ := strings.Cut(line, " ")
	if !ok || !isSimpleMethod(method) {
		return r, 0, false
	}
	u, ok := parseTarget(target)
	if !ok || !serves(target) {
		return r, 0, false
	}
	r = http.Request{
		Method:     method,
		URL:        u,
		RequestURI: target,
		Proto:      "HTTP/1.1",
		ProtoMajor: 1,
		ProtoMinor: 1,
	}
	ok = parseFields(&r, fields)
	return r, end + 4, ok
}

func isSimpleMethod(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return true
	}
	return false
}

// parseTarget parses a path of unreserved characters and an optional query.
func parseTarget(target string) (*url.URL, bool) {
	path, query, hasQuery := strings.Cut(target, "?")
	if !strings.HasPrefix(path, "/") || strings.HasPrefix(path, "//") ||
		!consistsOf(path, inPath) || !consistsOf(query, inQuery) || hasQuery && query == "" {
		return nil, false
	}
	return &url.URL{Path: path, RawQuery: query}, true
}

// parseFields parses the header fields and reports whether they belong to a simple request.
// They don't if one of them changes how the request must be read or served.
func parseFields(r *http.Request, fields string) bool {
	r.Header = make(http.Header, strings.Count(fields, "\n"))
	for fields != "" {
		var line string
		line, fields, _ = strings.Cut(fields, "\r\n")
		name, value, colon := strings.Cut(line, ":")
		if !colon || name == "" || !consistsOf(name, inName) || !consistsOf(value, inValue) {
			return false
		}
		name, value = textproto.CanonicalMIMEHeaderKey(name), strings.Trim(value, " \t")
		if !readField(r, name, value) {
			return false
		}
		if name != "Host" { // net/http leaves it out of the header
			r.Header[name] = append(r.Header[name], value)
		}
	}
	return r.Host != ""
}

// readField applies a field to the request and reports whether a simple request may have
// it.
func readField(r *http.Request, name, value string) bool {
	switch name {
	case "Host":
		if value == "" || r.Host != "" || !consistsOf(value, inHost) {
			return false
		}
		r.Host = value
	case "Content-Length":
		length, err := strconv.ParseUint(value, 10, 31)
		if err != nil || r.Header[name] != nil {
			return false
		}
		r.ContentLength = int64(length)
	case "Connection":
		return strings.EqualFold(value, "keep-alive")
	case "Expect", "Pragma", "Trailer", "Transfer-Encoding", "Upgrade":
		return false
	}
	return true
}

// The characters allowed in each part of a simple request.
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

func consistsOf(text string, kind uint8) bool {
	for i := range len(text) {
		if kinds[text[i]]&kind == 0 {
			return false
		}
	}
	return true
}
