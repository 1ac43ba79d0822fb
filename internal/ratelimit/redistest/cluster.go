//go:build unix

package redistest

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"

	"animalstore/internal/testenv"
)

// Cluster is a Redis Cluster of three primaries, with TLS and a password.
type Cluster struct {
	Primaries []*Server
	Replica   *Server // of the first primary, nil if there is none; see Pair

	t testing.TB
}

// nodeTimeout is after how many milliseconds a primary that doesn't respond is replaced, by a
// Cluster with a replica or by sentinels.
const nodeTimeout = "1000"

// StartCluster runs a Cluster of three primaries, and a replica of the first if one is
// wanted. They are killed when the test ends.
func StartCluster(t testing.TB, withReplica bool) *Cluster {
	t.Helper()
	c := &Cluster{t: t}
	args := append(secure(t), "--cluster-enabled", "yes")
	if withReplica {
		args = append(args, "--cluster-node-timeout", nodeTimeout)
	}
	node := func() *Server {
		_, port, _ := net.SplitHostPort(freeAddr(t))
		return start(t, true, append(slices.Clone(args), "--cluster-port", port))
	}
	const slots = 16384
	for i := range 3 {
		s := node()
		c.Primaries = append(c.Primaries, s)
		s.must("CLUSTER", "ADDSLOTSRANGE", strconv.Itoa(slots*i/3), strconv.Itoa(slots*(i+1)/3-1))
		// While they agree on different epochs by themselves, a slot that moves can get lost.
		s.must("CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
	}
	if withReplica {
		c.Replica = node()
	}
	for _, s := range c.Nodes() {
		c.Primaries[0].must("CLUSTER", "MEET", "127.0.0.1", s.port(), s.argument("--cluster-port"))
	}
	c.eventuallyOK()
	if withReplica {
		c.Replica.must("CLUSTER", "REPLICATE", c.Primaries[0].must("CLUSTER", "MYID"))
		c.Replica.EventuallyReplicates()
	}
	return c
}

// Nodes returns all servers.
func (c *Cluster) Nodes() []*Server {
	if c.Replica == nil {
		return c.Primaries
	}
	return append(slices.Clone(c.Primaries), c.Replica)
}

// eventuallyOK waits until every node knows all others and serves.
func (c *Cluster) eventuallyOK() {
	c.t.Helper()
	nodes := c.Nodes()
	for _, s := range nodes {
		testenv.Eventually(s.t, "the Cluster is complete", func() bool {
			info, err := s.Do("CLUSTER", "INFO").ToString()
			return err == nil && field(info, "cluster_state") == "ok" && field(info, "cluster_known_nodes") == strconv.Itoa(len(nodes))
		})
	}
}

// URL is the address for a limiter.
func (c *Cluster) URL() string { return secureURL(c.Nodes()) }

// secureURL is the address of several servers.
func secureURL(servers []*Server) string {
	// A frozen primary is replaced, so limiters don't wait for it as long as usual.
	url := "rediss://:" + password + "@" + servers[0].Addr + "?skip_verify=true&timeout=3s"
	for _, s := range servers[1:] {
		url += "&addr=" + s.Addr
	}
	return url
}

// Flush deletes everything.
func (c *Cluster) Flush() {
	c.t.Helper()
	for _, s := range c.Primaries {
		s.Flush()
	}
}

// Failover makes the replica of the first primary a primary, at its own request.
func (c *Cluster) Failover() {
	c.t.Helper()
	c.Replica.must("CLUSTER", "FAILOVER")
}

// MoveSlot moves a key's slot, with all keys in it, from the primary that has it to the
// next one, as redis-cli --cluster reshard does.
func (c *Cluster) MoveSlot(key string) {
	c.t.Helper()
	slot := fmt.Sprint(mustInt(c.t, c.Primaries[0], "CLUSTER", "KEYSLOT", key))
	at := slices.IndexFunc(c.Primaries, func(s *Server) bool { return c.owns(s, slot) })
	if at < 0 {
		c.t.Fatalf("no primary has slot %s", slot)
	}
	from, to := c.Primaries[at], c.Primaries[(at+1)%len(c.Primaries)]
	fromID, toID := from.must("CLUSTER", "MYID"), to.must("CLUSTER", "MYID")
	to.must("CLUSTER", "SETSLOT", slot, "IMPORTING", fromID)
	from.must("CLUSTER", "SETSLOT", slot, "MIGRATING", toID)
	for {
		keys, err := from.Do("CLUSTER", "GETKEYSINSLOT", slot, "100").AsStrSlice()
		if err != nil {
			c.t.Fatalf("keys in slot %s: %v", slot, err)
		}
		if len(keys) == 0 {
			break
		}
		from.must(append([]string{"MIGRATE", "127.0.0.1", to.port(), "", "0", "10000", "AUTH", password, "KEYS"}, keys...)...)
	}
	for _, s := range []*Server{to, from} {
		s.must("CLUSTER", "SETSLOT", slot, "NODE", toID)
	}
}

// owns reports whether a primary says that a slot is its own.
func (c *Cluster) owns(s *Server, slot string) bool {
	nodes, err := s.Do("CLUSTER", "NODES").ToString()
	if err != nil {
		c.t.Fatal(err)
	}
	n, _ := strconv.Atoi(slot)
	for line := range strings.Lines(nodes) {
		fields := strings.Fields(line)
		if !strings.Contains(fields[2], "myself") {
			continue
		}
		for _, r := range fields[8:] {
			first, last, isRange := strings.Cut(r, "-")
			if !isRange {
				last = first
			}
			from, err := strconv.Atoi(first)
			to, _ := strconv.Atoi(last)
			if err == nil && from <= n && n <= to {
				return true
			}
		}
	}
	return false
}

// Pair returns the first primary and its replica, which may have swapped roles.
func (c *Cluster) Pair() (primary, replica *Server) {
	if c.Replica.IsPrimary() && !c.Primaries[0].IsPrimary() {
		c.Primaries[0], c.Replica = c.Replica, c.Primaries[0]
	}
	return c.Primaries[0], c.Replica
}

// Rejoin waits until a primary that came back is a replica, which the Cluster makes it.
func (c *Cluster) Rejoin(old *Server) {
	c.t.Helper()
	old.EventuallyReplicates()
	c.eventuallyOK()
}
