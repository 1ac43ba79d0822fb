package ratelimit

import (
	"context"
	_ "embed"
	"errors"
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

// redisClient calls the script. Only connect creates a client of the library, which opens
// connections, so that no request waits for that.
type redisClient struct {
	options rueidis.ClientOption
	current atomic.Pointer[rueidis.Client] // nil while not connected
}

// connect creates a client unless there is one. A client replaces its connections by
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

// close closes the connections. It doesn't wait for that, because a Redis that doesn't
// respond delays it.
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
	// The library ignores ctx while another call opens the connection, and while a
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
