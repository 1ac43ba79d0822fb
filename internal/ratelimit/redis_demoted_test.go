package ratelimit_test

import (
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"animalstore/internal/ratelimit/redistest"
)

// TestDemotedRedis: when the name of Redis leads to a new primary and the old one has
// become its replica, limits are shared again through the new one.
func TestDemotedRedis(t *testing.T) {
	t.Parallel()
	old, promoted := redistest.Start(t), redistest.Start(t)
	var target atomic.Value
	target.Store(old.Addr)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				s, err := net.Dial("tcp", target.Load().(string))
				if err != nil {
					return
				}
				defer s.Close()
				go func() { io.Copy(s, c); s.Close() }()
				io.Copy(c, s)
			}()
		}
	}()
	f := newFleet(t, "redis://"+l.Addr().String(), 0)
	in, key := f.servers[0], enterprise(1, 1_000, 1_000)
	f.eventually("shared", func() bool { return !f.anyFallback() })
	f.burst(1, 1, key)
	target.Store(promoted.Addr)
	host, port, _ := strings.Cut(promoted.Addr, ":")
	if err := old.Do("REPLICAOF", host, port).Error(); err != nil {
		t.Fatal(err)
	}
	f.burst(1, 1, key)
	f.eventually("the new primary decides", func() bool { // Redis may be too slow for a request
		shared := in.Stats().Shared
		f.burst(1, 1, key)
		return in.Stats().Shared > shared
	})
}
