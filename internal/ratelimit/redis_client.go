package ratelimit

import (
	"context"
	"crypto/tls"
	_ "embed"
	"errors"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

//go:embed take.lua
var takeLua string

var takeScript = rueidis.NewLuaScript(takeLua)

var (
	errNotConnected = errors.New("not connected")
	errLate         = errors.New("no reply in time")
)

// redisClient calls the script. Only connect makes a client of the library, which opens
// connections, so that no request waits for that.
type redisClient struct {
	options rueidis.ClientOption
	current atomic.Pointer[rueidis.Client] // nil while not connected
	lost    chan struct{}                  // signals that a connection ended
}

// newRedisClient returns a client that isn't connected yet.
func newRedisClient(address string) (*redisClient, error) {
	options, err := parseRedisURL(address)
	if err != nil {
		return nil, err
	}
	c := &redisClient{options: options, lost: make(chan struct{}, 1)}
	c.options.DialCtxFn = c.dial
	return c, nil
}

// dial opens a connection that signals when it ends.
func (c *redisClient) dial(ctx context.Context, address string, dialer *net.Dialer, config *tls.Config) (conn net.Conn, err error) {
	if config != nil {
		conn, err = (&tls.Dialer{NetDialer: dialer, Config: config}).DialContext(ctx, "tcp", address)
	} else {
		conn, err = dialer.DialContext(ctx, "tcp", address)
	}
	if err != nil {
		return nil, err
	}
	return c.watch(conn), nil
}

func (c *redisClient) watch(conn net.Conn) net.Conn {
	return &watchedConn{Conn: conn, ended: sync.OnceFunc(c.signalLost)}
}

// watchedConn calls ended when it is closed.
type watchedConn struct {
	net.Conn
	ended func()
}

func (c *watchedConn) Close() error {
	defer c.ended()
	return c.Conn.Close()
}

// connect makes a client unless there is one. A client replaces its connections by
// itself.
func (c *redisClient) connect() error {
	if c.current.Load() != nil {
		return nil
	}
	client, err := rueidis.NewClient(c.options)
	if err != nil {
		if client != nil {
			go client.Close()
		}
		return err
	}
	c.current.Store(&client)
	return nil
}

func (c *redisClient) signalLost() {
	select {
	case c.lost <- struct{}{}:
	default:
	}
}

// close closes the connections. It doesn't wait for that, because a Redis that doesn't
// answer delays it.
func (c *redisClient) close() {
	if client := c.current.Swap(nil); client != nil {
		go (*client).Close()
	}
}

// runScript calls the script with a key and arguments, once. A Redis without the
// script hasn't run anything, and is then sent the whole script.
func (c *redisClient) runScript(timeout time.Duration, key string, args []string) (string, error) {
	client := c.current.Load()
	if client == nil {
		return "", errNotConnected
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	type result struct {
		text string
		err  error
	}
	done := make(chan result, 1)
	// The library doesn't watch ctx while another call opens the connection, nor while a
	// thousand calls wait for their replies.
	go func() {
		text, err := takeScript.Exec(ctx, *client, []string{key}, args).ToString()
		done <- result{text, err}
	}()
	select {
	case r := <-done:
		return r.text, r.err
	case <-ctx.Done():
		return "", errLate
	}
}
