package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"slices"
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

// server is what a server says about itself.
type server struct {
	address  string
	topology topology // "" if it can't be reached or refuses to say
	sets     []string // the names of a sentinel's primaries; nil if it refuses to say
}

// checkTopology returns an error if a server that can be reached isn't of the topology
// that the address says, or if the sentinels that can be reached don't know the primary.
// Servers that can't be reached, or refuse to say, are ignored.
func (c *redisClient) checkTopology() error {
	servers := make(chan server, len(c.options.InitAddress))
	for _, address := range c.options.InitAddress {
		go func() { servers <- c.inspect(address) }()
	}
	want, set, setKnown := topologyOf(&c.options), c.options.Sentinel.MasterSet, false
	var wrong, unknown error
	for range c.options.InitAddress {
		s := <-servers
		write, valid := whatToWrite[s.topology]
		switch {
		case valid && s.topology != want:
			wrong = errors.Join(wrong, errors.New(s.address+" "+write))
		case slices.Contains(s.sets, set):
			setKnown = true
		case s.sets != nil:
			unknown = errors.Join(unknown, unknownSet(s, set))
		}
	}
	if wrong != nil || setKnown {
		return wrong
	}
	return unknown
}

// unknownSet is the error for a sentinel that doesn't know a primary.
func unknownSet(s server, set string) error {
	if len(s.sets) == 0 {
		return fmt.Errorf("the Sentinel %s watches no primary: configure it with SENTINEL MONITOR %s", s.address, set)
	}
	return fmt.Errorf("the Sentinel %s doesn't know master_set=%s: write master_set=%s", s.address, set, strings.Join(s.sets, " or master_set="))
}

// inspect asks a server what it is.
func (c *redisClient) inspect(address string) server {
	s := server{address: address}
	options := c.options
	options.InitAddress, options.ForceSingleClient = []string{address}, true
	options.Sentinel.MasterSet, options.SelectDB = "", 0
	options.DialCtxFn = nil // the end of this connection is no outage
	client, err := rueidis.NewClient(options)
	if client != nil {
		defer func() { go client.Close() }()
	}
	if err != nil {
		return s
	}
	ctx, cancel := context.WithTimeout(context.Background(), dialTimeout)
	defer cancel()
	info, err := client.Do(ctx, client.B().Info().Section("server").Build()).ToString()
	if err != nil {
		return s
	}
	_, rest, _ := strings.Cut(info, "redis_mode:")
	mode, _, _ := strings.Cut(rest, "\r\n")
	if s.topology = topology(mode); s.topology == sentinel {
		s.sets = masterSets(ctx, client)
	}
	return s
}

// masterSets returns the names of the primaries that a sentinel knows, or nil if it refuses
// to say.
func masterSets(ctx context.Context, client rueidis.Client) []string {
	primaries, err := client.Do(ctx, client.B().Arbitrary("SENTINEL", "MASTERS").Build()).ToArray()
	if err != nil {
		return nil
	}
	sets := []string{}
	for _, primary := range primaries {
		fields, err := primary.AsStrMap()
		if err != nil {
			return nil
		}
		sets = append(sets, fields["name"])
	}
	slices.Sort(sets)
	return sets
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

// clusterSlots returns the first reply to CLUSTER SLOTS. It asks every node that the
// library knows, because some may be away.
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
	if first < 0 || first > last || last >= slots {
		return 0, 0, "", fmt.Errorf("an element of CLUSTER SLOTS for slots %d to %d", first, last)
	}
	primary, err = node[2].ToString()
	return first, last, primary, err
}

// nameInSlots returns a name with a prefix that is stored in one of these slots.
func nameInSlots(client rueidis.Client, prefix string, first, last int64) string {
	for i := int64(0); ; i++ {
		name := prefix + ":" + decimal(i)
		command := client.B().Get().Key(name).Build()
		if slot := int64(command.Slot()); first <= slot && slot <= last {
			return name
		}
	}
}
