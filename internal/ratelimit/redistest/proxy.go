//go:build unix

package redistest

import (
	"bufio"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"testing"
)

// Proxy is a connection between a limiter and its Redis that can be cut. It counts
// the commands.
type Proxy struct {
	Addr   string
	target string

	mu       sync.Mutex
	cut      bool
	conns    map[net.Conn]struct{}
	commands map[string]int64
}

// NewProxy starts a proxy to a server.
func NewProxy(t testing.TB, s *Server) *Proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{Addr: l.Addr().String(), target: s.Addr, conns: map[net.Conn]struct{}{}, commands: map[string]int64{}}
	var running sync.WaitGroup
	running.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() { p.serve(c) })
		}
	})
	t.Cleanup(func() {
		l.Close()
		p.Cut()
		running.Wait()
	})
	return p
}

// URL is the address for a limiter.
func (p *Proxy) URL() string { return "redis://" + p.Addr }

// Cut closes every connection, and each new one immediately.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = true
	p.closeAll()
}

// Restore allows connections again.
func (p *Proxy) Restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.cut = false
}

// Drop closes every connection but allows new ones.
func (p *Proxy) Drop() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeAll()
}

func (p *Proxy) closeAll() {
	for c := range p.conns {
		c.Close()
	}
}

// Commands returns how often each command was sent since the last call.
func (p *Proxy) Commands() map[string]int64 {
	p.mu.Lock()
	defer p.mu.Unlock()
	sent := p.commands
	p.commands = map[string]int64{}
	return sent
}

// track registers c for closeAll, unless the proxy is cut.
func (p *Proxy) track(c net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.cut {
		p.conns[c] = struct{}{}
	}
	return !p.cut
}

func (p *Proxy) forget(c net.Conn) {
	c.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, c)
}

func (p *Proxy) serve(client net.Conn) {
	defer p.forget(client)
	if !p.track(client) {
		return
	}
	server, err := net.Dial("tcp", p.target)
	if err != nil {
		return
	}
	defer p.forget(server)
	if !p.track(server) {
		return
	}
	var back sync.WaitGroup
	back.Go(func() {
		io.Copy(client, server)
		client.Close()
	})
	p.forward(server, client)
	server.Close()
	back.Wait()
}

// forward forwards and counts commands, one at a time.
func (p *Proxy) forward(server, client net.Conn) {
	in := bufio.NewReader(client)
	for {
		command, raw, err := readCommand(in)
		if err != nil {
			return
		}
		p.mu.Lock()
		p.commands[strings.ToLower(command)]++
		p.mu.Unlock()
		if _, err := server.Write(raw); err != nil {
			return
		}
	}
}

// readCommand reads an array of bulk strings and returns the first.
func readCommand(in *bufio.Reader) (command string, raw []byte, err error) {
	number := func(prefix byte) (int, error) {
		line, err := in.ReadBytes('\n')
		raw = append(raw, line...)
		if err != nil || len(line) < 3 || line[0] != prefix {
			return 0, io.ErrUnexpectedEOF
		}
		return strconv.Atoi(string(line[1 : len(line)-2]))
	}
	parts, err := number('*')
	for i := 0; i < parts && err == nil; i++ {
		var size int
		if size, err = number('$'); err != nil {
			break
		}
		part := make([]byte, size+2)
		_, err = io.ReadFull(in, part)
		raw = append(raw, part...)
		if i == 0 && err == nil {
			command = string(part[:size])
		}
	}
	return command, raw, err
}
