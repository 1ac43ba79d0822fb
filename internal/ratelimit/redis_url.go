package ratelimit

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/rueidis"
)

const (
	// keepAlive is how long a connection is idle before the library pings Redis.
	keepAlive = 10 * time.Second
	// connBuffer is the size of a connection's buffers: about a hundred calls.
	connBuffer = 32 << 10
	// maxRedirections is how often a Cluster may redirect a call.
	maxRedirections = 8
	// requestTimeout is how long one request waits for Redis in total, even if it needs
	// several calls, unless the address has a timeout. We promise 100 ms; the rest is for
	// the scheduler.
	requestTimeout = 75 * time.Millisecond
)

// CheckRedisURL reports an invalid Redis address, without repeating it.
func CheckRedisURL(address string) error {
	_, _, err := parseRedisURL(address)
	return err
}

var errRedisURL = errors.New("not an address like redis://[user:password@]host:port[/database] or rediss://…")

// redisOptions are the options that we accept. The library ignores misspelled ones, and
// its others would change how long a request waits or send a call twice. Only timeout is
// ours.
var redisOptions = []string{"addr", "master_set", "skip_verify", "timeout"}

// parseRedisURL returns the library's options for an address, and how long a request waits
// for Redis. Its errors don't repeat the address, which may contain a password.
func parseRedisURL(address string) (o rueidis.ClientOption, timeout time.Duration, err error) {
	if !strings.HasPrefix(address, "redis://") && !strings.HasPrefix(address, "rediss://") {
		return o, 0, errRedisURL
	}
	u, err := url.Parse(address)
	if err != nil {
		return o, 0, errRedisURL
	}
	if timeout, err = checkRedisOptions(u); err != nil {
		return o, 0, err
	}
	o, err = rueidis.ParseURL(address)
	if err != nil {
		return o, 0, errRedisURL
	}
	if o.TLSConfig != nil {
		o.TLSConfig.ServerName = "" // verify each server by its own name, not the first one's
	}
	o.ForceSingleClient = topologyOf(&o) == standalone
	o.Dialer = net.Dialer{Timeout: max(dialTimeout, timeout), KeepAlive: keepAlive}
	o.ConnWriteTimeout = o.Dialer.Timeout
	o.DisableRetry = true // a call that is sent twice is charged twice
	o.DisableCache = true
	o.AlwaysPipelining = true // which also notices at once that a connection has ended
	o.PipelineMultiplex = -1  // one connection to a server, so that more calls share a write
	o.ReadBufferEachConn, o.WriteBufferEachConn = connBuffer, connBuffer
	o.ClientSetInfo = rueidis.DisableClientSetInfo
	o.ClusterOption.MaxMovedRedirections = maxRedirections
	o.Sentinel.Dialer, o.Sentinel.TLSConfig = o.Dialer, o.TLSConfig
	o.Sentinel.Username, o.Sentinel.Password = o.Username, o.Password
	return o, timeout, nil
}

// checkRedisOptions returns how long a request waits for Redis. Its error names an option
// that is wrong, but not in an address where it may be part of a password with a question
// mark.
func checkRedisOptions(u *url.URL) (timeout time.Duration, err error) {
	options := u.Query()
	for _, name := range slices.Sorted(maps.Keys(options)) {
		switch {
		case slices.Contains(redisOptions, name):
		case strings.Contains(u.RawQuery, "@"):
			return 0, errors.New("the only options of redis:// are addr, master_set, skip_verify and timeout")
		default:
			return 0, fmt.Errorf("redis:// has no option %q, only addr, master_set, skip_verify and timeout", name)
		}
	}
	if value := options.Get("skip_verify"); value != "" {
		if _, err := strconv.ParseBool(value); err != nil {
			return 0, errors.New("the option skip_verify must be true or false")
		}
	}
	if !options.Has("timeout") {
		return requestTimeout, nil
	}
	timeout, err = time.ParseDuration(options.Get("timeout"))
	if err != nil || timeout <= 0 {
		return 0, errors.New("the option timeout must be a time like 200ms")
	}
	return timeout, nil
}
