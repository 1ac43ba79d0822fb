package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/redis/rueidis"
)

// slots is how many slots a Cluster divides all keys into.
const slots = 16384

// whatToWrite is the address for each topology.
var whatToWrite = map[topology]string{
	standalone: "is a single Redis: write redis://HOST:PORT, without addr and master_set",
	cluster:    "is a node of a Cluster: write redis://HOST:PORT?addr=HOST2:PORT2, with at least two of its nodes",
	sentinel:   "is a Sentinel: write redis://HOST:PORT?addr=HOST2:PORT2&master_set=NAME, with the name that it knows the primary by",
}

// checkTopology returns an error if a server that can be reached isn't of the topology
// that the address says. Servers that can't be reached, or refuse to tell, are ignored.
func (c *redisClient) checkTopology() error {
	want := topologyOf(&c.options)
	found := make(chan error, len(c.options.InitAddress))
	for _, address := range c.options.InitAddress {
		go func() {
			got := c.topologyAt(address)
			write, known := whatToWrite[got]
			if known && got != want {
				found <- errors.New(address + " " + write)
				return
			}
			found <- nil
		}()
	}
	var err error
	for range c.options.InitAddress {
		err = errors.Join(err, <-found)
	}
	return err
}

// topologyAt asks a server for its topology.
func (c *redisClient) topologyAt(address string) topology {
	options := c.options
	options.InitAddress, options.ForceSingleClient = []string{address}, true
	options.Sentinel.MasterSet, options.SelectDB = "", 0
	options.DialCtxFn = nil // nobody waits for the end of this connection
	client, err := rueidis.NewClient(options)
	if client != nil {
		defer func() { go client.Close() }()
	}
	if err != nil {
		return ""
	}
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	info, err := client.Do(ctx, client.B().Info().Section("server").Build()).ToString()
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(info, "redis_mode:")
	mode, _, _ := strings.Cut(rest, "\r\n")
	return topology(mode)
}

// probeNames returns names that begin with prefix. In a Cluster there is one for each
// primary, which stores it; otherwise there is one.
func (c *redisClient) probeNames(prefix string) ([]string, error) {
	client := c.current.Load()
	if client == nil {
		return nil, errNotConnected
	}
	if topologyOf(&c.options) != cluster {
		return []string{prefix}, nil
	}
	shards, err := clusterSlots(*client)
	if err != nil {
		return nil, fmt.Errorf("ask the Cluster for its slots: %w", err)
	}
	var names []string
	primaries, covered := map[string]bool{}, int64(0)
	for _, shard := range shards {
		first, last, primary, err := parseShard(shard)
		if err != nil {
			return nil, err
		}
		covered += last - first + 1
		if !primaries[primary] {
			primaries[primary] = true
			names = append(names, nameInSlots(*client, prefix, first, last))
		}
	}
	if covered < slots {
		return nil, fmt.Errorf("only %d of the Cluster's %d slots are served", covered, slots)
	}
	return names, nil
}

// clusterSlots returns what the first node to answer replies to CLUSTER SLOTS. The nodes
// that the library knows include some that are away.
func clusterSlots(client rueidis.Client) ([]rueidis.RedisMessage, error) {
	nodes := client.Nodes()
	replies := make(chan rueidis.RedisResult, len(nodes))
	for _, node := range nodes {
		go func() {
			// The reply to another node must not cancel this: it may open the connection
			// that requests wait for.
			ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
			defer cancel()
			replies <- node.Do(ctx, node.B().ClusterSlots().Build())
		}()
	}
	err := errNotConnected
	for range nodes {
		var shards []rueidis.RedisMessage
		reply := <-replies
		if shards, err = reply.ToArray(); err == nil {
			return shards, nil
		}
	}
	return nil, err
}

// parseShard parses an element of CLUSTER SLOTS: two slots, the primary and its replicas,
// each with a host, a port and an id.
func parseShard(shard rueidis.RedisMessage) (first, last int64, primary string, err error) {
	fields, err := shard.ToArray()
	if err == nil && len(fields) < 3 {
		err = errors.New("an element of CLUSTER SLOTS without a primary")
	}
	if err != nil {
		return 0, 0, "", err
	}
	first, firstErr := fields[0].AsInt64()
	last, lastErr := fields[1].AsInt64()
	node, nodeErr := fields[2].ToArray()
	if err := errors.Join(firstErr, lastErr, nodeErr); err != nil {
		return 0, 0, "", err
	}
	if len(node) < 3 {
		return 0, 0, "", errors.New("a node in CLUSTER SLOTS without an id")
	}
	primary, err = node[2].ToString()
	return first, last, primary, err
}

// nameInSlots returns a name with a prefix whose slot is one of those.
func nameInSlots(client rueidis.Client, prefix string, first, last int64) string {
	for i := int64(0); ; i++ {
		name := prefix + ":" + decimal(i)
		command := client.B().Get().Key(name).Build()
		if slot := int64(command.Slot()); first <= slot && slot <= last {
			return name
		}
	}
}
