//go:build unix

package redistest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"animalstore/internal/testenv"
)

// MasterSet is the name that sentinels know their primary by.
const MasterSet = "limits"

// Sentinel is a primary and a replica that three sentinels watch, with TLS and a
// password.
type Sentinel struct {
	Primary, Replica *Server // see Pair
	Sentinels        []*Server

	t testing.TB
}

// StartSentinel runs the five servers. They are killed when the test ends.
func StartSentinel(t testing.TB) *Sentinel {
	t.Helper()
	args := secure(t)
	s := &Sentinel{t: t}
	s.Primary = start(t, true, args)
	s.Replica = start(t, true, append(slices.Clone(args), "--replicaof", "127.0.0.1 "+s.Primary.port()))
	s.Replica.EventuallyReplicates()
	for range 3 {
		one := s.startSentinel(args)
		// Usually they ask each other and the servers every two and ten seconds.
		one.must("SENTINEL", "DEBUG", "INFO-PERIOD", "500", "PUBLISH-PERIOD", "500")
		s.Sentinels = append(s.Sentinels, one)
	}
	for _, one := range s.Sentinels {
		testenv.Eventually(one.t, "the sentinels know each other and the replica", func() bool {
			known, err := one.Do("SENTINEL", "MASTER", MasterSet).AsStrMap()
			return err == nil && known["num-other-sentinels"] == "2" && known["num-slaves"] == "1" && known["flags"] == "master"
		})
	}
	return s
}

// startSentinel runs a sentinel, whose configuration must be a file that it can rewrite.
func (s *Sentinel) startSentinel(args []string) *Server {
	s.t.Helper()
	var conf strings.Builder
	for i := 0; i < len(args); i += 2 {
		if name := strings.TrimPrefix(args[i], "--"); name != "masterauth" && name != "tls-cluster" && name != "repl-diskless-sync-delay" {
			fmt.Fprintf(&conf, "%s %s\n", name, args[i+1])
		}
	}
	fmt.Fprintf(&conf, "sentinel monitor %s 127.0.0.1 %s 2\n", MasterSet, s.Primary.port())
	fmt.Fprintf(&conf, "sentinel auth-pass %s %s\nsentinel sentinel-pass %s\n", MasterSet, password, password)
	fmt.Fprintf(&conf, "sentinel down-after-milliseconds %s %s\nsentinel failover-timeout %s 10000\n", MasterSet, nodeTimeout, MasterSet)
	return runSentinel(s.t, true, conf.String())
}

// StartIdleSentinel runs a sentinel that watches nothing, without TLS and a password.
func StartIdleSentinel(t testing.TB) *Server {
	t.Helper()
	return runSentinel(t, false, "")
}

func runSentinel(t testing.TB, secure bool, conf string) *Server {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "sentinel.conf")
	if err := os.WriteFile(file, []byte(conf), 0o600); err != nil {
		t.Fatal(err)
	}
	s := &Server{t: t, secure: secure, dir: dir, first: []string{file, "--sentinel"}}
	s.run()
	return s
}

// URL is the address for a limiter.
func (s *Sentinel) URL() string { return secureURL(s.Sentinels) + "&master_set=" + MasterSet }

// Failover makes the sentinels promote the replica.
func (s *Sentinel) Failover() {
	s.t.Helper()
	s.Sentinels[0].must("SENTINEL", "FAILOVER", MasterSet)
}

// Pair returns the current primary and its replica.
func (s *Sentinel) Pair() (primary, replica *Server) {
	if s.Replica.IsPrimary() && !s.Primary.IsPrimary() {
		s.Primary, s.Replica = s.Replica, s.Primary
	}
	return s.Primary, s.Replica
}

// Rejoin makes a primary that came back a replica of the new one, as the sentinels do after
// some seconds, and waits until they know it.
func (s *Sentinel) Rejoin(old *Server) {
	s.t.Helper()
	promoted := s.Replica
	if old == s.Replica {
		promoted = s.Primary
	}
	testenv.Eventually(old.t, "there are a primary and a replica", func() bool {
		if old.IsPrimary() && promoted.IsPrimary() {
			old.Do("REPLICAOF", "127.0.0.1", promoted.port())
		}
		return old.replicates() || promoted.replicates()
	})
	for _, one := range s.Sentinels {
		testenv.Eventually(one.t, "the sentinels know the new replica", func() bool {
			known, err := one.Do("SENTINEL", "REPLICAS", MasterSet).ToArray()
			if err != nil || len(known) != 1 {
				return false
			}
			replica, err := known[0].AsStrMap()
			return err == nil && replica["flags"] == "slave" && replica["master-link-status"] == "ok"
		})
	}
}
