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
)

// CheckRedisURL reports an invalid Redis address, without repeating it.
func CheckRedisURL(address string) error {
	_, err := parseRedisURL(address)
	return err
}

var errRedisURL = errors.New("not an address like redis://[user:password@]host:port[/database] or rediss://…")

// redisOptions are the options that we accept. The library ignores misspelled ones, and
// its others would change how long a request waits or send a call twice.
var redisOptions = []string{"addr", "master_set", "skip_verify"}

// parseRedisURL returns the library's options for an address. Its errors don't repeat
// the address, which may contain a password.
func parseRedisURL(address string) (o rueidis.ClientOption, err error) {
	if !strings.HasPrefix(address, "redis://") && !strings.HasPrefix(address, "rediss://") {
		return o, errRedisURL
	}
	u, err := url.Parse(address)
	if err != nil {
		return o, errRedisURL
	}
	if err := checkRedisOptions(u); err != nil {
		return o, err
	}
	o, err = rueidis.ParseURL(address)
	if err != nil {
		return o, errRedisURL
	}
	if o.TLSConfig != nil {
		o.TLSConfig.ServerName = "" // verify each server by its own name, not the first one's
	}
	o.ForceSingleClient = topologyOf(&o) == standalone
	o.Dialer = net.Dialer{Timeout: dialTimeout, KeepAlive: keepAlive}
	o.ConnWriteTimeout = dialTimeout
	o.DisableRetry = true // a call that is sent twice is charged twice
	o.DisableCache = true
	o.AlwaysPipelining = true // which also notices at once that a connection has ended
	o.PipelineMultiplex = -1  // one connection to a server, so that more calls share a write
	o.ReadBufferEachConn, o.WriteBufferEachConn = connBuffer, connBuffer
	o.ClientSetInfo = rueidis.DisableClientSetInfo
	o.ClusterOption.MaxMovedRedirections = maxRedirections
	o.Sentinel.Dialer, o.Sentinel.TLSConfig = o.Dialer, o.TLSConfig
	o.Sentinel.Username, o.Sentinel.Password = o.Username, o.Password
	return o, nil
}

// checkRedisOptions names an option that is wrong, but not in an address where it may be
// part of a password with a question mark.
func checkRedisOptions(u *url.URL) error {
	options := u.Query()
	for _, name := range slices.Sorted(maps.Keys(options)) {
		switch {
		case slices.Contains(redisOptions, name):
		case strings.Contains(u.RawQuery, "@"):
			return errors.New("the only options of redis:// are addr, master_set and skip_verify")
		default:
			return fmt.Errorf("redis:// has no option %q, only addr, master_set and skip_verify", name)
		}
	}
	if value := options.Get("skip_verify"); value != "" {
		if _, err := strconv.ParseBool(value); err != nil {
			return errors.New("the option skip_verify must be true or false")
		}
	}
	return nil
}
