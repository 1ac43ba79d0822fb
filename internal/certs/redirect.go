package certs

import (
	"net"
	"net/http"
	"strconv"
	"strings"
)

// Redirect returns a handler for plain HTTP that redirects clients to the same path
// over HTTPS, served at the address https. It also answers the HTTP challenges of an
// ACME authority.
func Redirect(c Certificates, https net.Addr) http.Handler {
	handler := redirect{c, https}
	if a, ok := c.(*acmeCertificates); ok {
		return a.manager.HTTPHandler(handler)
	}
	return handler
}

// redirect redirects only to hosts that the certificates are valid for, so it can't be
// used to send people elsewhere.
//
// The status is 308 for every method: unlike after 301 and 302, clients repeat a POST
// as a POST, with its body.
type redirect struct {
	certs Certificates
	https net.Addr
}

func (h redirect) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	host, port := splitHost(r.Host)
	target := r.URL.RequestURI()
	if r.Method == http.MethodConnect || !strings.HasPrefix(target, "/") {
		http.Error(w, "use HTTPS", http.StatusBadRequest)
		return
	}
	if !h.certs.Covers(host) {
		http.Error(w, "this server has no certificate for the host in your request: use one of the server's names", http.StatusMisdirectedRequest)
		return
	}
	w.Header().Set("Location", "https://"+h.authority(host, port)+target)
	w.WriteHeader(http.StatusPermanentRedirect)
}

// authority is the host and port to use for HTTPS. Clients on the standard HTTP port
// are sent to the standard HTTPS port, even if the server listens on another one,
// because something in between maps both. All others are sent to the server's port.
func (h redirect) authority(host, port string) string {
	tcp, ok := h.https.(*net.TCPAddr)
	if port == "" || port == "80" || !ok || tcp.Port == 443 {
		if strings.Contains(host, ":") {
			return "[" + host + "]"
		}
		return host
	}
	return net.JoinHostPort(host, strconv.Itoa(tcp.Port))
}

// splitHost splits a Host header into the host, without brackets, and the port or "".
func splitHost(header string) (host, port string) {
	host, port, err := net.SplitHostPort(header)
	if err != nil {
		host, port = header, ""
	}
	host = strings.TrimSuffix(strings.TrimPrefix(host, "["), "]")
	return strings.ToLower(strings.TrimSuffix(host, ".")), port
}
