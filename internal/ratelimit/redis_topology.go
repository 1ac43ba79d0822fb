package ratelimit

import (
	"context"
	"fmt"
	"strings"

	"github.com/redis/rueidis"
)

// topology is how the servers of a Redis work together. The values are those of
// redis_mode in INFO.
type topology string

const (
	standalone topology = "standalone"
	cluster    topology = "cluster"
	sentinel   topology = "sentinel"
)

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

// addressHints show the address to use for each topology.
var addressHints = map[topology]string{
	standalone: "is a single Redis: use redis://HOST:PORT without addr and master_set",
	cluster:    "is a node of a Cluster: use redis://HOST:PORT?addr=HOST2:PORT2 with at least two nodes",
	sentinel:   "is a Sentinel: use redis://HOST:PORT?addr=HOST2:PORT2&master_set=NAME",
}

// checkTopology returns an error if the first server's topology isn't the one that the
// address describes. A server that doesn't respond, or refuses to, passes.
func checkTopology(options rueidis.ClientOption) error {
	want, address := topologyOf(&options), options.InitAddress[0]
	options.InitAddress, options.ForceSingleClient = []string{address}, true
	options.Sentinel.MasterSet, options.SelectDB = "", 0
	client, err := rueidis.NewClient(options)
	if client != nil {
		defer func() { go client.Close() }()
	}
	if err != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), options.Dialer.Timeout)
	defer cancel()
	info, err := client.Do(ctx, client.B().Info().Section("server").Build()).ToString()
	if err != nil {
		return nil
	}
	_, rest, _ := strings.Cut(info, "redis_mode:")
	mode, _, _ := strings.Cut(rest, "\r\n")
	if hint, known := addressHints[topology(mode)]; known && topology(mode) != want {
		return fmt.Errorf("%s %s", address, hint)
	}
	return nil
}
