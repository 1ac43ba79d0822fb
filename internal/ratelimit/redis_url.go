package ratelimit

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
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

// topology is how the servers of a Redis work together. The values are those of
// redis_mode in INFO.
type topology string

const (
	standalone topology = "standalone"
	cluster    topology = "cluster"
	sentinel   topology = "sentinel"
)

// CheckRedisURL reports an invalid Redis address, without repeating it.
func CheckRedisURL(address string) error {
	_, err := parseRedisURL(address)
	return err
}

var errRedisURL = errors.New("not an address like redis://[user:password@]host:port[/database] or rediss://…")

// parseRedisURL returns the library's options for an address, in the library's own
// grammar. It doesn't use the library's parser, which ignores unknown options and misreads
// an addr without a port. Its errors don't repeat the address, which may contain a
// password.
func parseRedisURL(address string) (o rueidis.ClientOption, err error) {
	u, err := url.Parse(address)
	if err != nil || u.Opaque != "" || !strings.HasPrefix(address, "redis://") && !strings.HasPrefix(address, "rediss://") {
		return o, errRedisURL
	}
	database, err := strconv.ParseUint("0"+strings.Trim(u.Path, "/"), 10, 31)
	if err != nil {
		return o, errRedisURL
	}
	host, port := u.Hostname(), u.Port()
	if host == "" {
		host = "localhost"
	}
	if port == "" {
		port = "6379"
	}
	o.InitAddress = []string{net.JoinHostPort(host, port)}
	o.Username = u.User.Username()
	o.Password, _ = u.User.Password()
	o.SelectDB = int(database)
	if u.Scheme == "rediss" {
		o.TLSConfig = &tls.Config{} // verifies the host that is connected to
	}
	if err := parseRedisOptions(&o, u.RawQuery); err != nil {
		return o, err
	}

	switch topologyOf(&o) {
	case standalone:
		o.ForceSingleClient = true
	case cluster:
		if o.SelectDB != 0 {
			return o, errors.New("redis:// with addr is a Cluster, which has only database 0")
		}
	}
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

// optionName matches what can be the name of an option. Anything else may be part of a
// password with an unescaped question mark.
var optionName = regexp.MustCompile(`^[a-z_]{1,30}$`)

// parseRedisOptions reads what follows the question mark of an address.
func parseRedisOptions(o *rueidis.ClientOption, query string) error {
	options, err := url.ParseQuery(query)
	if err != nil {
		return errRedisURL
	}
	for name, values := range options {
		switch name {
		case "addr":
			for _, addr := range values {
				host, port, err := net.SplitHostPort(addr)
				if n, portErr := strconv.ParseUint(port, 10, 16); err != nil || portErr != nil || host == "" || n == 0 {
					return errors.New("an addr in redis:// is not host:port")
				}
			}
			o.InitAddress = append(o.InitAddress, values...)
		case "master_set":
			if len(values) != 1 || values[0] == "" {
				return errors.New("master_set in redis:// must be the name that the sentinels know the primary by, once")
			}
			o.Sentinel.MasterSet = values[0]
		case "skip_verify":
			skip, err := strconv.ParseBool(values[0])
			if err != nil {
				return errors.New("skip_verify in rediss:// must be true or false")
			}
			if o.TLSConfig != nil {
				o.TLSConfig.InsecureSkipVerify = skip
			}
		default:
			if !optionName.MatchString(name) {
				return errRedisURL
			}
			return fmt.Errorf("unknown option %s: redis:// takes addr, master_set and skip_verify", name)
		}
	}
	return nil
}

// topologyOf returns the topology that an address describes.
func topologyOf(o *rueidis.ClientOption) topology {
	switch {
	case o.Sentinel.MasterSet != "":
		return sentinel
	case len(o.InitAddress) > 1:
		return cluster
	}
	return standalone
}
