package http1

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// watched is the server's end of a connection. It reports when it is closed.
type watched struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
}

func (c *watched) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// cutting is the client's end of a connection that loses everything after its first
// write. If deaf, it receives nothing either.
type cutting struct {
	net.Conn
	deaf   bool
	writes int
}

func (c *cutting) Write(b []byte) (int, error) {
	if c.writes++; c.writes > 1 {
		return len(b), nil
	}
	return c.Conn.Write(b)
}

func (c *cutting) Read(b []byte) (int, error) {
	if c.deaf {
		return 0, io.EOF
	}
	return c.Conn.Read(b)
}

// TestHandshakeTimeouts: clients keep a handshake waiting, or the first request after
// it.
func TestHandshakeTimeouts(t *testing.T) {
	hello := func(c net.Conn) { tls.Client(c, clientTLS).Handshake() }
	late := func(send string) func(net.Conn) {
		return func(c net.Conn) {
			time.Sleep(4 * time.Second)
			io.WriteString(tls.Client(c, clientTLS), send)
			io.Copy(io.Discard, c)
		}
	}
	for _, c := range []struct {
		name   string
		client func(net.Conn)
		want   time.Duration
	}{
		{"nothing sent", func(net.Conn) {}, 5 * time.Second},
		{"half a hello", func(c net.Conn) { io.WriteString(c, "\x16\x03\x01\x02\x00\x01\x00") }, 5 * time.Second},
		{"a hello only", func(c net.Conn) { hello(&cutting{Conn: c}) }, 5 * time.Second},
		{"a hello, and nothing read", func(c net.Conn) { hello(&cutting{Conn: c, deaf: true}) }, 5 * time.Second},
		{"a late handshake only", late(""), 9 * time.Second},
		{"a late handshake and half a head", late("GET / HT"), 9 * time.Second},
		{"a late handshake and half a body", late("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhi"), 14 * time.Second},
		{"a late handshake and a request", late(plainGet), 64 * time.Second},
	} {
		for name, plain := range map[string]func(string) bool{"fast path": anyTarget, "net/http": func(string) bool { return false }} {
			t.Run(c.name+"/"+name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					server := newServer(&echo{})
					config := serverTLS()
					config.SessionTicketsDisabled = true // see connect
					p := make(pipes)
					l := NewServer(p, config, server, plain, discard)
					go l.Serve()
					client, far := net.Pipe()
					near := &watched{Conn: far, closed: make(chan struct{})}
					p <- near
					start := time.Now()
					var clients sync.WaitGroup
					clients.Go(func() { c.client(client) })
					<-near.closed
					if took := time.Since(start); took < c.want || took > c.want+100*time.Millisecond {
						t.Errorf("closed after %v, want %v", took, c.want)
					}
					client.Close()
					clients.Wait()
					if err := l.Shutdown(t.Context()); err != nil {
						t.Error(err)
					}
				})
			})
		}
	}
}

// TestSlowHandshakes: clients that don't complete their handshake don't delay others.
func TestSlowHandshakes(t *testing.T) {
	server := newServer(&echo{})
	server.ReadHeaderTimeout, server.ReadTimeout, server.WriteTimeout = time.Hour, time.Hour, time.Hour // the client gives up sooner
	l := listen(t, serverTLS(), server)
	var silent []net.Conn
	for range 50 {
		silent = append(silent, dialAddr(t, l.inner.Addr().String(), false))
	}
	c := dial(t, l)
	get(t, c)
	for _, c := range silent {
		c.Close()
	}
}

// TestNotTLS: clients don't speak TLS, or make mistakes in it. The responses and the
// log are the same as net/http's.
func TestNotTLS(t *testing.T) {
	run := func(fast bool, text string) (string, string) {
		t.Helper()
		logged := make(lines, 10)
		server := newServer(&echo{})
		server.ErrorLog = log.New(logged, "", 0)
		var addr string
		if fast {
			addr = listen(t, serverTLS(), server).inner.Addr().String()
		} else {
			s := httptest.NewUnstartedServer(nil)
			s.Config = server
			s.Listener = tls.NewListener(s.Listener, serverTLS())
			s.Start()
			t.Cleanup(s.Close)
			addr = s.Listener.Addr().String()
		}
		c := dialAddr(t, addr, false)
		io.WriteString(c, text)
		closeWrite(c)
		b, err := io.ReadAll(c)
		line := strings.ReplaceAll(<-logged, c.LocalAddr().String(), "CLIENT")
		return fmt.Sprintf("%q %v", b, err), strings.ReplaceAll(line, addr, "SERVER")
	}
	for _, text := range []string{
		plainGet,
		"POST / HTTP/1.1\r\n",
		"not TLS\r\n\r\n",
		"\x80\x2e\x01\x00\x02\x00\x15\x00\x00",
		"\x16\x03\x01\xff\xff",
		"\x16\x03\x01\x00\x05\x01\x00\x00\x01\x00",
		"\x16\x03",
		"",
	} {
		got, gotLog := run(true, text)
		want, wantLog := run(false, text)
		if got != want || gotLog != wantLog {
			t.Errorf("%q: got %s and log %q, want %s and %q", text, got, gotLog, want, wantLog)
		}
		if text == plainGet && !strings.Contains(got, "400 Bad Request") {
			t.Errorf("%q: got %s, want 400", text, got)
		}
		if !strings.HasPrefix(gotLog, "http: TLS handshake error from CLIENT: ") {
			t.Errorf("%q: got log %q, want a TLS handshake error", text, gotLog)
		}
	}
}

// TestProtocols: clients request various protocols. They get the same as from net/http,
// and only HTTP/1.1 is served without it.
func TestProtocols(t *testing.T) {
	config := serverTLS()
	config.NextProtos = append(config.NextProtos, "acme-tls/1")
	s := newSame(t, config)
	for _, c := range []struct {
		protocols []string
		plain     int64
		want      string // in the response
	}{
		{nil, 1, "TLS 1.3 \n"},
		{[]string{"http/1.1"}, 1, "TLS 1.3 http/1.1\n"},
		{[]string{"http/1.1", "h2"}, 0, "TLS 1.3 h2\n"}, // the server's preference counts
		{[]string{"h2"}, 0, "TLS 1.3 h2\n"},
		{[]string{"acme-tls/1"}, 0, "no response"},
		{[]string{"unknown"}, 0, "no application protocol"},
	} {
		s.echo.plain.Store(0)
		got, want := askFor(t, s.here, c.protocols), askFor(t, s.there, c.protocols)
		if got != want || !strings.Contains(got, c.want) {
			t.Errorf("%q:\ngot  %s\nwant %s, with %q", c.protocols, got, want, c.want)
		}
		if n := s.echo.plain.Load(); n != c.plain {
			t.Errorf("%q: %d requests were served as plain, want %d", c.protocols, n, c.plain)
		}
	}
}

// askFor sends a request on a connection whose client offers these protocols.
func askFor(t *testing.T, addr string, protocols []string) string {
	t.Helper()
	c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, NextProtos: protocols})
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(30 * time.Second))
	transport := &http.Transport{Protocols: new(http.Protocols)}
	transport.Protocols.SetHTTP1(true)
	transport.Protocols.SetHTTP2(true)
	transport.DialTLSContext = func(context.Context, string, string) (net.Conn, error) { return c, nil }
	defer transport.CloseIdleConnections()
	request, _ := http.NewRequest("GET", "https://a/", nil)
	res, err := transport.RoundTrip(request)
	if err != nil {
		return "no response" // for varying reasons
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	return fmt.Sprintf("%s %s %v", res.Proto, text, err)
}

// TestShutdownOfDeafClients: over TLS a server sends a closing message on idle
// connections. All clients that don't receive it delay the shutdown at the same time,
// not one after the other, and not beyond its deadline.
func TestShutdownOfDeafClients(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{time.Minute: 5 * time.Second, 2 * time.Second: 2 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			server := newServer(&echo{})
			p := make(pipes)
			config := serverTLS()
			l := NewServer(p, config, server, anyTarget, discard)
			go l.Serve()
			for range 20 {
				get(t, p.connect(config))
			}
			synctest.Wait() // until all are idle
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			start := time.Now()
			err := l.Shutdown(ctx)
			if late := timeout == want; errors.Is(err, context.DeadlineExceeded) != late {
				t.Errorf("within %v: got %v, want it too late: %v", timeout, err, late)
			}
			if took := time.Since(start); took < want || took > want+100*time.Millisecond {
				t.Errorf("within %v: it took %v, want %v", timeout, took, want)
			}
		})
	}
}

// TestPanicInHandshake: choosing a certificate panics once.
func TestPanicInHandshake(t *testing.T) {
	logged := make(lines, 10)
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var handshakes atomic.Int64
	config := &tls.Config{GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		if handshakes.Add(1) == 1 {
			panic("a mistake")
		}
		c := certificate()
		return &c, nil
	}}
	server := newServer(&echo{})
	l := NewServer(tcp, config, server, anyTarget, slog.New(slog.NewTextHandler(logged, nil)))
	serve(t, l)
	if err := dial(t, l).(*tls.Conn).Handshake(); err == nil {
		t.Error("got a handshake, want the connection closed")
	}
	if line := <-logged; !strings.Contains(line, "level=ERROR") || !strings.Contains(line, "a mistake") {
		t.Errorf("got log line %q, want the panic", line)
	}
	get(t, dial(t, l))
}

// countedWrites counts the writes to the connections that it accepts.
type countedWrites struct {
	net.Listener
	n *atomic.Int64
}

type countedConn struct {
	net.Conn
	n *atomic.Int64
}

func (l countedWrites) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	return countedConn{c, l.n}, err
}

func (c countedConn) Write(b []byte) (int, error) {
	c.n.Add(1)
	return c.Conn.Write(b)
}

// TestOneRecord: the header and body of a response are one record, once crypto/tls has
// stopped sending the small records it starts every connection with.
func TestOneRecord(t *testing.T) {
	tcp, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("x", 15<<10)
	server := newServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) }))
	var writes atomic.Int64
	l := NewServer(countedWrites{tcp, &writes}, serverTLS(), server, anyTarget, discard)
	serve(t, l)
	c := dial(t, l)
	for range 10 {
		get(t, c)
	}
	before := writes.Load()
	for range 10 {
		if got := get(t, c); got != text {
			t.Errorf("got %d bytes, want %d", len(got), len(text))
		}
	}
	if n := writes.Load() - before; n != 10 {
		t.Errorf("got %d writes for 10 responses, want 10", n)
	}
}
