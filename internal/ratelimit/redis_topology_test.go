package ratelimit_test

import (
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/ratelimit"
	"animalstore/internal/ratelimit/redistest"
)

// TestWrongTopology: the server doesn't start if the address describes another topology
// than Redis has.
func TestWrongTopology(t *testing.T) {
	single := redistest.Start(t)
	node := redistest.Start(t, "--cluster-enabled", "yes")
	watcher := redistest.StartIdleSentinel(t)
	for _, c := range []struct{ url, want string }{
		{"redis://" + single.Addr, ""},
		{"redis://" + node.Addr, "is a node of a Cluster"},
		{"redis://" + watcher.Addr, "is a Sentinel"},
		{"redis://" + single.Addr + "?addr=127.0.0.1:1", "is a single Redis"},
		{"redis://" + single.Addr + "?master_set=limits", "is a single Redis"},
		{"redis://" + watcher.Addr + "?master_set=limits", ""},
		{"redis://127.0.0.1:1?addr=127.0.0.1:2", ""}, // can't be reached
	} {
		r, err := ratelimit.NewRedis(ratelimit.RedisConfig{URL: c.url, Environment: animalstore.Production, Store: newMemoryStore(), Now: time.Now, Log: discard})
		if err == nil {
			r.Close()
		}
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.url, err, c.want)
		}
	}
}

// TestRedisURL: a wrong address is refused without repeating it.
func TestRedisURL(t *testing.T) {
	for _, url := range []string{
		"redis://", "redis://cache", "redis://cache:6379", "redis://cache:6379/3", "redis://:6380", "redis://[::1]:6379",
		"redis://user:hunter2@cache", "redis://:hunter2@cache", "rediss://cache?skip_verify=true",
		"redis://a:6379?addr=b:6379&addr=c:6379", "redis://a:26379?addr=b:26379&master_set=limits",
	} {
		if err := ratelimit.CheckRedisURL(url); err != nil {
			t.Errorf("%s: got %v", url, err)
		}
	}
	for _, url := range []string{
		"", "127.0.0.1:6379", "http://user:hunter2@cache", "unix://user:hunter2@/tmp/socket", "redis://user:hunter2@cache:port", "redis://user:hunter2@cache/zero",
		"redis://user:hunter2@[::1", "redis://user:hunter2%zz@cache", "redis://user?hunter2@cache",
		"redis://user:hunter2@cache?nonsense=1", "redis://user:hunter2@cache?max_retries=3", "rediss://user:hunter2@cache?skip_verify=maybe",
	} {
		err := ratelimit.CheckRedisURL(url)
		if err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v, want an error without the password", url, err)
		}
	}
}
