package ratelimit

import (
	"context"
	_ "embed"
	"errors"
	"net"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/gomodule/redigo/redis"
)

//go:embed take.lua
var takeLua string

var takeScript = redis.NewScript(1, takeLua)

var errNotConnected = errors.New("not connected")

// redisClient calls the script over one connection at a time. Only connect opens one,
// so that no request waits for that.
type redisClient struct {
	address string
	options []redis.DialOption
	current atomic.Pointer[pipeline] // nil before the first connection
	lost    chan struct{}            // signals that a connection ended
}

// CheckRedisURL reports an invalid Redis address, without repeating it.
func CheckRedisURL(address string) error {
	_, err := newRedisClient(address)
	return err
}

// newRedisClient returns a client that isn't connected yet.
func newRedisClient(fullURL string) (*redisClient, error) {
	invalid := errors.New("not an address like redis://[user:password@]host:port[/database] or rediss://…")
	u, err := url.Parse(fullURL)
	if err != nil || u.Opaque != "" || !strings.HasPrefix(fullURL, "redis://") && !strings.HasPrefix(fullURL, "rediss://") {
		return nil, invalid
	}
	query := u.Query()
	database, err := strconv.ParseUint("0"+strings.Trim(u.Path, "/"), 10, 31)
	if err != nil {
		return nil, invalid
	}
	skipVerify, err := strconv.ParseBool(query.Get("skip_verify"))
	if err != nil && query.Has("skip_verify") {
		return nil, invalid
	}
	query.Del("skip_verify")
	if len(query) > 0 {
		return nil, invalid
	}
	host, port := u.Hostname(), u.Port()
	if host == "" {
		host = "localhost"
	}
	if port == "" {
		port = "6379"
	}
	password, _ := u.User.Password()
	return &redisClient{
		address: net.JoinHostPort(host, port),
		options: []redis.DialOption{
			redis.DialUsername(u.User.Username()), redis.DialPassword(password), redis.DialDatabase(int(database)),
			redis.DialUseTLS(u.Scheme == "rediss"), redis.DialTLSSkipVerify(skipVerify), redis.DialTLSHandshakeTimeout(dialTimeout),
		},
		lost: make(chan struct{}, 1),
	}, nil
}

// connect opens a connection unless there is one that works as far as is known.
func (c *redisClient) connect() error {
	if p := c.current.Load(); p != nil && p.failure() == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	conn, err := redis.DialContext(ctx, "tcp", c.address, c.options...)
	if err != nil {
		return err
	}
	c.current.Store(newPipeline(conn, c.signalLost))
	return nil
}

func (c *redisClient) signalLost() {
	select {
	case c.lost <- struct{}{}:
	default:
	}
}

// close closes the connection.
func (c *redisClient) close() {
	if p := c.current.Load(); p != nil {
		p.end(errNotConnected)
	}
}

// runScript calls the script with a key and arguments, once. A Redis without the
// script hasn't run anything, and is then sent the whole script.
func (c *redisClient) runScript(timeout time.Duration, keyAndArgs []any) (string, error) {
	p := c.current.Load()
	if p == nil {
		return "", errNotConnected
	}
	began := time.Now()
	reply, err := p.do(timeout, "EVALSHA", append([]any{takeScript.Hash(), 1}, keyAndArgs...))
	var refused redis.Error
	if errors.As(err, &refused) && strings.HasPrefix(string(refused), "NOSCRIPT ") {
		reply, err = p.do(timeout-time.Since(began), "EVAL", append([]any{takeLua, 1}, keyAndArgs...))
	}
	return redis.String(reply, err)
}
