package e2e

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/ratelimit/redistest"
	"animalstore/internal/testenv"
)

// cluster is three servers on one PostgreSQL and one Redis.
type cluster struct {
	t       testing.TB
	dsn     string
	servers []*server
	keys    int
	hop     []*http.Client // one for each client, with connections to all servers
}

const clusterSize = 3

// startCluster starts the servers. redisURL is Redis's address for them.
func startCluster(t testing.TB, redisURL string) *cluster {
	t.Helper()
	// Fewer connections than by default: other tests use the same PostgreSQL.
	c := &cluster{t: t, dsn: pgtest.Shared(t).NewDatabase(t, "") + "&pool_max_conns=6"}
	for range clusterSize {
		c.servers = append(c.servers, start(t, withOps(), withArgs("--database", c.dsn, "--redis", redisURL)))
	}
	for range 64 {
		transport := &http.Transport{MaxIdleConnsPerHost: 1}
		t.Cleanup(transport.CloseIdleConnections)
		c.hop = append(c.hop, &http.Client{Transport: transport, Timeout: 30 * time.Second})
	}
	t.Cleanup(func() {
		if t.Failed() {
			for i, s := range c.servers {
				lines := strings.SplitAfter(s.stderr.String(), "\n")
				t.Logf("the log of server %d ends with\n%s", i, strings.Join(lines[max(0, len(lines)-20):], ""))
			}
		}
	})
	return c
}

// key creates a key and returns its secret. plan is a plan's name, or an enterprise
// key's limit per minute.
func (c *cluster) key(plan string) string {
	c.t.Helper()
	c.keys++
	args := []string{"keys", "create", "--yes", "--database", c.dsn, "--name", fmt.Sprintf("key %d", c.keys)}
	if _, err := strconv.Atoi(plan); err == nil {
		args = append(args, "--plan", "enterprise", "--per-minute", plan, "--per-day", "1000000")
	} else {
		args = append(args, "--plan", plan)
	}
	r := run(c.t, args...)
	if r.code != 0 {
		c.t.Fatalf("keys create: exit code %d\n%s", r.code, r.stderr)
	}
	return strings.TrimSpace(r.stdout)
}

// outcome is the result of many requests.
type outcome struct {
	admitted [clusterSize]int64
	refused  int64
	wrong    []string // a few of the other responses
}

func (o outcome) total() (n int64) {
	for _, a := range o.admitted {
		n += a
	}
	return n
}

// burst lets clients send the given number of requests in total, each to a different
// server than the previous one.
func (c *cluster) burst(clients int, requests int64, key string) outcome {
	c.t.Helper()
	var admitted [clusterSize]atomic.Int64
	var sent, refused atomic.Int64
	var mu sync.Mutex
	var o outcome
	var wg sync.WaitGroup
	for n := range clients {
		wg.Go(func() {
			for i := n; sent.Add(1) <= requests; i++ {
				at := i % clusterSize
				cl := client{url: c.servers[at].url, key: key, http: c.hop[n]}
				a, err := cl.try("GET", "/v1/pets", "")
				switch {
				case err == nil && a.status == 200:
					admitted[at].Add(1)
				case err == nil && a.status == 429:
					refused.Add(1)
				default:
					mu.Lock()
					o.wrong = append(o.wrong, fmt.Sprintf("%d %.200s %v", a.status, a.body, err))
					mu.Unlock()
				}
			}
		})
	}
	wg.Wait()
	for i := range admitted {
		o.admitted[i] = admitted[i].Load()
	}
	o.refused = refused.Load()
	if len(o.wrong) > 0 {
		c.t.Errorf("%d responses are neither 200 nor 429, such as %s", len(o.wrong), o.wrong[0])
	}
	return o
}

// load sends small bursts until end is called or the test ends.
func (c *cluster) load(key string) (end func()) {
	stop := make(chan struct{})
	var load sync.WaitGroup
	load.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(breather()):
				c.burst(6, 30, key)
			}
		}
	})
	end = sync.OnceFunc(func() {
		close(stop)
		load.Wait()
	})
	c.t.Cleanup(end)
	return end
}

// sum adds up a metric of all servers.
func (c *cluster) sum(series string) (n float64) {
	c.t.Helper()
	for _, s := range c.servers {
		n += s.metric(series)
	}
	return n
}

const (
	fallbackNow       = "animalstore_limit_fallback"
	fallbackDecisions = "animalstore_limit_fallback_decisions_total"
	sharedDecisions   = "animalstore_limit_shared_decisions_total"
)

// exact checks that a burst with a new key is admitted exactly up to its limit. If the
// machine is so busy that Redis doesn't respond in time, an instance correctly falls
// back to its own limiter. Such a round says nothing about sharing and is repeated with
// fewer clients.
func (c *cluster) exact(when, plan string, limit int64) {
	c.t.Helper()
	for attempt := range 15 {
		c.awaitShared()
		before := c.sum(fallbackDecisions)
		clients := max(4, 64>>attempt)
		o := c.burst(clients, limit+limit/4+64, c.key(plan))
		if alone := c.sum(fallbackDecisions) - before; alone > 0 {
			c.t.Logf("%s, plan %s: Redis was too slow for %d clients on this machine, %v requests were decided without it: trying again", when, plan, clients, alone)
			continue
		}
		if got := o.total(); got != limit {
			c.t.Errorf("%s, plan %s: got %d admitted by all servers (%v), want %d", when, plan, got, o.admitted, limit)
		}
		for i, n := range o.admitted {
			if n == 0 && limit >= 300 { // a small one may be used up before a slow server gets its turn
				c.t.Errorf("%s, plan %s: server %d admitted nothing: the clients do not hop", when, plan, i)
			}
		}
		return
	}
	c.t.Errorf("%s, plan %s: Redis was too slow in every round", when, plan)
}

// awaitShared waits until every server has asked Redis again. On a busy machine they may
// never do so all at the same time: a server falls back whenever one of its requests
// waits too long for Redis.
func (c *cluster) awaitShared() {
	c.t.Helper()
	for i, s := range c.servers {
		testenv.Eventually(c.t, fmt.Sprintf("server %d shares its limits", i), func() bool { return s.metric(fallbackNow) == 0 })
	}
}

// clusterPlans are all plans and their limits per minute.
var clusterPlans = []struct {
	plan  string
	limit int64
}{{"free", 60}, {"pro", 300}, {"business", 1_000}, {"7", 7}, {"450", 450}}

// TestSharedLimitsAreExact lets 64 clients alternate between three servers.
func TestSharedLimitsAreExact(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t)
	c := startCluster(t, redis.URL())
	rounds := testenv.Count(1, 100)
	for round := range rounds {
		for _, p := range clusterPlans {
			if p.limit > 500 && !testenv.Soak {
				continue // on a busy machine, Redis is late for one of so many requests
			}
			c.exact(fmt.Sprint("round ", round), p.plan, p.limit)
		}
	}

	// By now every server knows the key and has its connections.
	key := c.key("1000000")
	c.burst(64, 256, key)
	c.awaitShared()
	before, alone := c.sum(sharedDecisions), c.sum(fallbackDecisions)
	redis.ResetCalls()
	const requests = 600
	c.burst(16, requests, key)
	calls := redis.Calls()
	if c.sum(fallbackDecisions) > 0 {
		// A second later Redis also receives the states it missed, in addition to the
		// requests.
		t.Logf("this machine kept Redis from answering in time, now or before (%v requests): %v", alone, calls)
	} else if n := calls["evalsha"]; n == 0 || n > requests || calls["eval"] != 0 || calls["get"] != n || c.sum(sharedDecisions)-before != requests {
		t.Errorf("Redis counted %v for %d requests, want at most an evalsha for each", calls, requests)
	}
}

// TestRedisOutages breaks Redis in every way while clients keep sending requests.
// Clients may notice only through their limits, and no ban may be lifted.
func TestRedisOutages(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	redis := redistest.Start(t)
	proxy := redistest.NewProxy(t, redis)
	c := startCluster(t, proxy.URL())
	rude := c.key("1")
	banEnd := newClient(t, c.servers[0], rude).provokeBan(t)
	c.exact("at first", "60", 60)
	busy := c.key("100")

	for _, outage := range []struct {
		name       string
		begin, end func()
		gone       bool // Redis doesn't respond meanwhile
	}{
		{"killed", redis.Kill, redis.Restart, true},
		{"frozen", redis.Stop, redis.Cont, true},
		{"cut off", proxy.Cut, proxy.Restore, true},
		{"connections dropped", proxy.Drop, func() {}, false},
		{"emptied", redis.Flush, func() {}, false},
	} {
		// Clients send all the time, with a key that is mostly refused.
		endLoad := c.load(busy)
		outage.begin()
		c.banned(outage.name, rude, banEnd)
		if outage.gone {
			const limit = 50
			key := c.key(fmt.Sprint(limit))
			o := c.burst(24, clusterSize*(limit+30), key)
			for i, n := range o.admitted {
				if n > limit {
					t.Errorf("%s: server %d admitted %d in a minute, want at most %d", outage.name, i, n, limit)
				}
			}
			for i, s := range c.servers {
				testenv.Eventually(t, fmt.Sprintf("%s: server %d says that it is alone", outage.name, i), func() bool { return s.metric(fallbackNow) == 1 })
				wantStatus(t, newClient(t, s, "").get(t, "/readyz"), 200, "")
			}
			c.banned(outage.name+", known to be gone", rude, banEnd)
		}
		outage.end()
		c.awaitShared()
		c.banned(outage.name+", and back", rude, banEnd)
		endLoad()
		c.exact("after Redis was "+outage.name, "60", 60)
	}
	for i, s := range c.servers {
		for _, line := range []string{"Redis does not answer", "Redis answers again"} {
			if n := strings.Count(s.stderr.String(), line); n < 3 {
				t.Errorf("server %d says %q %d times in three outages:\n%s", i, line, n, s.stderr)
			}
		}
	}
	if !testenv.Soak {
		return
	}
	// The key that was in use all the time must be exact in its next window.
	reset, _ := strconv.ParseInt(newClient(t, c.servers[0], busy).get(t, "/v1/pets").header.Get("X-RateLimit-Reset"), 10, 64)
	time.Sleep(time.Until(time.Unix(reset, 0).Add(100 * time.Millisecond)))
	if o := c.burst(16, 200, busy); o.total() != 100 {
		t.Errorf("a window after the last outage: got %d admitted (%v), want 100", o.total(), o.admitted)
	}
}

// banned checks that every server refuses a key until the same second.
func (c *cluster) banned(when, key, end string) {
	c.t.Helper()
	for i, s := range c.servers {
		a := newClient(c.t, s, key).get(c.t, "/v1/pets")
		if got := a.header.Get("X-RateLimit-Reset"); !strings.Contains(a.body, "key_banned") || got != end {
			c.t.Errorf("%s, server %d: got %d %s until %s, want the ban until %s", when, i, a.status, a.body, got, end)
		}
	}
}

// TestStartWithoutRedis: a server that can't reach Redis still serves, and none of its
// output contains the password.
func TestStartWithoutRedis(t *testing.T) {
	t.Parallel()
	s := start(t, withOps(), withArgs("--redis", "redis://user:hunter2@127.0.0.1:1/0"))
	key := newKey(t, s.database, "--name", "small", "--plan", "enterprise", "--per-minute", "5", "--per-day", "100")
	c := newClient(t, s, key)
	for range 5 {
		wantStatus(t, c.get(t, "/v1/pets"), 200, "")
	}
	wantStatus(t, c.get(t, "/v1/pets"), 429, "rate_limit_exceeded")
	wantStatus(t, c.get(t, "/readyz"), 200, "")
	if got := s.metric(fallbackNow); got != 1 {
		t.Errorf("%s is %v without Redis, want 1", fallbackNow, got)
	}
	for place, said := range map[string]string{"log": s.stderr.String(), "standard output": s.stdout.String(), "metrics": s.metrics()} {
		if strings.Contains(said, "hunter2") {
			t.Errorf("the password of Redis is in the %s", place)
		}
	}
	if n := strings.Count(s.stderr.String(), "Redis does not answer"); n != 1 {
		t.Errorf("the log says %d times that Redis does not answer, want once:\n%s", n, s.stderr)
	}
}
