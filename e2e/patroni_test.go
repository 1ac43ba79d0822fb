package e2e

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"animalstore/internal/testenv"
)

// fault is what happens to a cluster in a round. It returns when the cluster can recover.
type fault struct {
	name  string
	cause func(t *testing.T, c *cluster, primary, standby *machine)
}

// held is how long a former primary is kept from learning that another was promoted.
const held = 15 * time.Second

var faults = []fault{
	{"switchover", func(t *testing.T, c *cluster, primary, _ *machine) {
		body := fmt.Appendf(nil, `{"leader":%q}`, primary.name)
		res, err := http.Post("http://"+primary.address+":8008/switchover", "application/json", bytes.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		if res.Body.Close(); res.StatusCode != http.StatusOK {
			t.Fatalf("switchover: status %d", res.StatusCode)
		}
	}},
	{"PostgreSQL killed", func(_ *testing.T, _ *cluster, primary, _ *machine) { primary.kill(isPostgres) }},
	{"machine killed", func(t *testing.T, c *cluster, primary, _ *machine) {
		primary.kill(isAny)
		c.awaitOther(t, primary)
		primary.start()
	}},
	{"frozen", func(_ *testing.T, _ *cluster, primary, _ *machine) { freeze(primary, 30*time.Second) }},
	// Its clients still reach PostgreSQL.
	{"stands still", func(t *testing.T, c *cluster, primary, _ *machine) {
		stands := func(command string) bool { return isPatroni(command) || isWALSender(command) }
		primary.signal(syscall.SIGSTOP, stands)
		defer primary.signal(syscall.SIGCONT, stands)
		c.awaitOther(t, primary)
		time.Sleep(held)
	}},
	{"etcd gone", func(_ *testing.T, c *cluster, _, _ *machine) {
		c.etcd.kill(isAny)
		time.Sleep(20 * time.Second)
		c.etcd.start()
	}},
	// Its clients still reach it.
	{"isolated", func(t *testing.T, c *cluster, primary, _ *machine) {
		for _, other := range append(slices.Clone(c.members), c.etcd) {
			if other != primary {
				ip(t, fmt.Sprintf("-n %s route add blackhole %s", primary.name, other.address))
				defer ip(t, fmt.Sprintf("-n %s route del blackhole %s", primary.name, other.address))
			}
		}
		c.awaitOther(t, primary)
		time.Sleep(held)
	}},
	{"standby frozen", func(_ *testing.T, _ *cluster, _, standby *machine) { freeze(standby, 15*time.Second) }},
}

func freeze(m *machine, d time.Duration) {
	m.signal(syscall.SIGSTOP, isAny)
	time.Sleep(d)
	m.signal(syscall.SIGCONT, isAny)
}

// within is how soon instances with a URL of all hosts must write again once a primary accepts
// writes.
const within = 5 * time.Second

// TestPatroni lets the primary of a cluster fail in every way, 30 times, while clients change
// the store through instances that connect to all hosts or through HAProxy. No acknowledged
// change is lost or made twice, and no follower is shown an event that doesn't stay.
func TestPatroni(t *testing.T) {
	testenv.OnlySoak(t, "takes half an hour")
	c := startCluster(t)
	primary, _ := c.awaitHealthy(t)
	c.mustExec(primary, "postgres",
		"CREATE ROLE animalstore LOGIN", "CREATE DATABASE store OWNER animalstore", "CREATE DATABASE probe")
	c.mustExec(primary, "probe", "CREATE TABLE probes (at timestamptz)")
	direct := urlOf("animalstore", "store", c.hosts()...) + "&target_session_attrs=read-write"
	instances := append(startInstances(t, 2, direct), startInstances(t, 2, urlOf("animalstore", "store", c.proxy))...)
	key := adminKey(t, direct)
	f := follow(t, 12, urlsOf(instances), key)
	load := newShoppers(t, instances, key, "unavailable")
	load.stale, load.pause = within, 10*pause
	load.start(16)
	h := newHistory(t, instances, key, f, &load.changes)
	offered := c.probe(t)

	// In seconds: the longest time without a write, in PostgreSQL itself and through each way of
	// connecting, how much later than PostgreSQL that way recovered, and until all was well.
	t.Logf("%-20s %10s %10s %10s %10s %10s %10s", "fault", "cluster", "all hosts", "later", "HAProxy", "later", "healthy")
	for round := range 30 {
		fault := faults[round%len(faults)]
		t.Run(fault.name, func(t *testing.T) {
			primary, standby := c.awaitHealthy(t)
			load.awaitMore(200)
			begun := time.Now()
			fault.cause(t, c, primary, standby)
			load.awaitEach(t)
			c.awaitHealthy(t)
			healthy := time.Since(begun)
			load.awaitEach(t)

			writes := offered.since(begun)
			var gap, later [2]time.Duration
			for i, m := range load.by {
				way := i / 2
				gap[way] = max(gap[way], m.since(begun).longestGap())
				later[way] = max(later[way], m.since(begun).longestWithout(writes))
			}
			t.Logf("%-20s %10.1f %10.1f %10.1f %10.1f %10.1f %10.1f", fault.name, writes.longestGap().Seconds(),
				gap[0].Seconds(), later[0].Seconds(), gap[1].Seconds(), later[1].Seconds(), healthy.Seconds())
			if later[0] > within {
				t.Errorf("an instance with a URL of all hosts wrote nothing for %s while the cluster accepted writes", later[0])
			}
			h.check(t)
		})
		for _, in := range instances {
			if in.ended() {
				t.Errorf("an instance has ended:\n%s", in.output())
			}
		}
		if t.Failed() {
			break
		}
	}
	load.stop()
	if !t.Failed() {
		h.finish(t)
	}
	t.Logf("%d changes were acknowledged, %d requests were repeated", load.acknowledged.Load(), load.retried.Load())
}

// probe writes to each member of the cluster directly, and returns when one accepted a write.
func (c *cluster) probe(t *testing.T) *moments {
	ctx, cancel := context.WithCancel(context.Background())
	var wg sync.WaitGroup
	t.Cleanup(func() { cancel(); wg.Wait() })
	offered := &moments{}
	for _, host := range c.hosts() {
		wg.Go(func() {
			var conn *pgx.Conn
			write := func() (err error) {
				ctx, cancel := context.WithTimeout(ctx, time.Second)
				defer cancel()
				if conn == nil || conn.IsClosed() {
					if conn, err = pgx.Connect(ctx, urlOf("postgres", "probe", host)); err != nil {
						return err
					}
				}
				_, err = conn.Exec(ctx, "INSERT INTO probes VALUES (now())")
				return err
			}
			for ctx.Err() == nil {
				if write() == nil {
					offered.add()
				}
				time.Sleep(5 * pause)
			}
			if conn != nil {
				conn.Close(context.Background())
			}
		})
	}
	return offered
}

// moments are when writes were acknowledged.
type moments struct {
	mu  sync.Mutex
	all instants
}

func (m *moments) add() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = append(m.all, time.Now())
}

func (m *moments) last() (at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.all) > 0 {
		at = m.all[len(m.all)-1]
	}
	return at
}

// since returns the moments from the last one before a time.
func (m *moments) since(begun time.Time) instants {
	m.mu.Lock()
	defer m.mu.Unlock()
	first := slices.IndexFunc(m.all, func(at time.Time) bool { return at.After(begun) })
	return slices.Clone(m.all[max(0, first-1):])
}

type instants []time.Time

// longestGap is the longest time without a write.
func (all instants) longestGap() (longest time.Duration) {
	for i := range len(all) - 1 {
		longest = max(longest, all[i+1].Sub(all[i]))
	}
	return longest
}

// longestWithout is the longest time without a write while the cluster accepted others at least
// once a second.
func (all instants) longestWithout(offered instants) (longest time.Duration) {
	for i := range len(all) - 1 {
		from, to := all[i], all[i+1]
		accepted := from // writes since then
		for j := range len(offered) - 1 {
			if offered[j+1].Before(from) {
				continue
			}
			if offered[j+1].Sub(offered[j]) > time.Second {
				accepted = offered[j+1]
			}
			if offered[j+1].After(to) {
				break
			}
			longest = max(longest, offered[j+1].Sub(accepted))
		}
	}
	return longest
}
