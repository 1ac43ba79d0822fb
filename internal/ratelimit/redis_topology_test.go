package ratelimit_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/ratelimit"
	"animalstore/internal/ratelimit/redistest"
)

// TestWrongTopology: the server doesn't start if the address says something else than Redis
// does. The error says what to write instead.
func TestWrongTopology(t *testing.T) {
	single := redistest.Start(t)
	node := redistest.Start(t, "--cluster-enabled", "yes")
	idle, watcher := redistest.StartIdleSentinel(t), redistest.StartIdleSentinel(t)
	_, port, _ := net.SplitHostPort(single.Addr)
	for _, set := range []string{"sessions", "limits"} {
		if err := watcher.Do("SENTINEL", "MONITOR", set, "127.0.0.1", port, "1").Error(); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ url, want string }{
		{"redis://" + single.Addr, ""},
		{"redis://" + node.Addr, node.Addr + " is a node of a Cluster: write redis://HOST:PORT?addr=HOST2:PORT2"},
		{"redis://" + watcher.Addr, watcher.Addr + " is a Sentinel: write redis://HOST:PORT?addr=HOST2:PORT2&master_set=NAME"},
		{"redis://" + single.Addr + "?addr=127.0.0.1:1", single.Addr + " is a single Redis: write redis://HOST:PORT"},
		{"redis://127.0.0.1:1?addr=" + single.Addr, single.Addr + " is a single Redis"},
		{"redis://127.0.0.1:1?addr=" + watcher.Addr, watcher.Addr + " is a Sentinel"},
		{"redis://" + single.Addr + "?master_set=limits", single.Addr + " is a single Redis: write redis://HOST:PORT"},
		{"redis://" + node.Addr + "?master_set=limits", node.Addr + " is a node of a Cluster"},
		{"redis://" + watcher.Addr + "?master_set=limits", ""},
		{"redis://" + watcher.Addr + "?master_set=limit", "the Sentinel " + watcher.Addr + " doesn't know master_set=limit: write master_set=limits or master_set=sessions"},
		{"redis://" + idle.Addr + "?master_set=limits", "the Sentinel " + idle.Addr + " watches no primary: configure it with SENTINEL MONITOR limits"},
		{"redis://127.0.0.1:1?master_set=limit&addr=" + watcher.Addr, "the Sentinel " + watcher.Addr + " doesn't know master_set=limit"},
		{"redis://" + idle.Addr + "?master_set=limits&addr=" + watcher.Addr, ""}, // one knows it
		{"redis://127.0.0.1:1?addr=127.0.0.1:2", ""},                             // can't be reached
		{"redis://127.0.0.1:1?master_set=limits", ""},
	} {
		r, err := ratelimit.NewRedis(ratelimit.RedisConfig{URL: c.url, Environment: animalstore.Production, Store: newMemoryStore(), Now: time.Now, Log: discard})
		if err == nil {
			r.Close()
		}
		if ok := err == nil && c.want == "" || err != nil && c.want != "" && strings.HasPrefix(err.Error(), c.want); !ok {
			t.Errorf("%s: got %v, want %q", c.url, err, c.want)
		}
	}
}

// TestRedisURL: every address from before there were other topologies still works, and a
// wrong one is refused without repeating it.
func TestRedisURL(t *testing.T) {
	for _, url := range []string{
		"redis://", "redis://cache", "redis://cache:6379", "redis://cache:6379/", "redis://cache:6379/3", "redis://:6380", "redis://[::1]:6379",
		"redis://user:hunter2@cache", "redis://:hunter2@cache", "rediss://cache?skip_verify=true", "rediss://cache?skip_verify=0", "redis://cache?skip_verify=true",
		"redis://a:6379?addr=b:6379&addr=c:6379", "rediss://user:hunter2@a:6379?addr=b:6379&skip_verify=true",
		"redis://a:26379?addr=b:26379&master_set=limits", "redis://a:26379/3?master_set=limits",
	} {
		if err := ratelimit.CheckRedisURL(url); err != nil {
			t.Errorf("%s: got %v", url, err)
		}
	}
	for _, c := range []struct{ url, want string }{
		{"redis://user:hunter2@cache?nonsense=1", "unknown option nonsense: redis:// takes addr, master_set and skip_verify"},
		{"redis://user:hunter2@cache?client_cache=0", "unknown option client_cache"},
		{"redis://user:hunter2@cache?db=3", "unknown option db"},
		{"redis://user?hunter2@cache", "not an address like redis://"},
		{"redis://user:hunter2@cache?addr=b", "an addr in redis:// is not host:port"},
		{"redis://user:hunter2@cache?addr=:6379", "an addr in redis:// is not host:port"},
		{"redis://user:hunter2@cache?addr=b:hunter2", "an addr in redis:// is not host:port"},
		{"redis://user:hunter2@cache?addr=", "an addr in redis:// is not host:port"},
		{"redis://user:hunter2@cache/1?addr=b:6379", "redis:// with addr is a Cluster, which has only database 0"},
		{"redis://user:hunter2@cache?master_set=", "master_set in redis:// must be the name"},
		{"redis://user:hunter2@cache?master_set=a&master_set=b", "master_set in redis:// must be the name"},
		{"rediss://user:hunter2@cache?skip_verify=maybe", "skip_verify in rediss:// must be true or false"},
		{"redis://user:hunter2@cache?a%zz", "not an address like redis://"},
		{"REDIS://user:hunter2@cache", "not an address like redis://"},
	} {
		err := ratelimit.CheckRedisURL(c.url)
		if err == nil || !strings.HasPrefix(err.Error(), c.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v, want %q without the password", c.url, err, c.want)
		}
	}
}
