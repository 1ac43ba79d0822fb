package ratelimit_test

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/ratelimit"
	"animalstore/internal/ratelimit/redistest"
	"animalstore/internal/testenv"
)

// TestWrongTopology_Slow: the server doesn't start if the address describes another topology
// than Redis has.
func TestWrongTopology_Slow(t *testing.T) {
	single := redistest.Start(t)
	node := redistest.Start(t, "--cluster-enabled", "yes")
	watcher := redistest.StartIdleSentinel(t)
	for url, ok := range map[string]bool{
		"redis://" + single.Addr + "?":                    true,
		"redis://" + node.Addr + "?":                      false,
		"redis://" + watcher.Addr + "?":                   false,
		"redis://" + single.Addr + "?addr=127.0.0.1:1&":   false,
		"redis://" + single.Addr + "?master_set=limits&":  false,
		"redis://" + watcher.Addr + "?master_set=limits&": true,
		"redis://127.0.0.1:1?addr=127.0.0.1:2&":           true, // can't be reached
	} {
		url += redistest.LongTimeout
		r, err := ratelimit.NewRedis(ratelimit.RedisConfig{URL: url, Environment: animalstore.Production, Store: newMemoryStore(), Now: time.Now, Log: discard})
		if err == nil {
			r.Close()
		}
		if (err == nil) != ok {
			t.Errorf("%s: got %v, want it accepted: %t", url, err, ok)
		}
	}
}

// TestRedisURL: a wrong address is refused without repeating it. The error names a wrong option,
// unless it may be part of a password.
func TestRedisURL(t *testing.T) {
	for _, url := range []string{
		"redis://", "redis://cache:6379/3", "redis://:6380", "redis://[::1]:6379", "redis://user:hunter2@cache",
		"rediss://cache?skip_verify=true", "redis://cache?timeout=1.5s", "redis://a:6379?addr=b:6379&addr=c:6379", "redis://a:26379?addr=b:26379&master_set=limits",
	} {
		if err := ratelimit.CheckRedisURL(url); err != nil {
			t.Errorf("%s: got %v", url, err)
		}
	}
	for url, option := range map[string]string{
		"":                                          "",
		"127.0.0.1:6379":                            "",
		"http://user:hunter2@cache":                 "",
		"unix://user:hunter2@/tmp/socket":           "",
		"redis://user:hunter2@cache:port":           "",
		"redis://user:hunter2@cache/zero":           "",
		"redis://user:hunter2@[::1":                 "",
		"redis://user:hunter2%zz@cache":             "",
		"redis://user?hunter2@cache":                "",
		"redis://user:hunter2@cache?max_retries=3":  `"max_retries"`,
		"redis://cache?addr=b:6379&Master_set=shop": `"Master_set"`,
		"redis://cache?db=two":                      `"db"`,
		"rediss://cache?skip_verify=maybe":          "skip_verify must be",
		"redis://cache?timeout=75":                  "timeout must be",
		"redis://cache?timeout=0s":                  "timeout must be",
		"redis://user:1?hunter2=&x=@cache":          "the only options",
	} {
		err := ratelimit.CheckRedisURL(url)
		if err == nil || !strings.Contains(err.Error(), option) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: got %v, want an error with %q, without the password", url, err, option)
		}
	}
}

// TestCredentials_Slow: without the right password, or a certificate that it can verify, a
// server decides without Redis.
func TestCredentials_Slow(t *testing.T) {
	cert, key := redistest.SelfSigned(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	encrypted := l.Addr().String()
	l.Close()
	_, port, _ := net.SplitHostPort(encrypted)
	server := redistest.Start(t, "--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "no")
	for _, user := range [][]string{
		{"SETUSER", "shop", "on", ">hunter2", "~animalstore:*", "+@all"},
		{"SETUSER", "default", "off"},
	} {
		if err := server.Do("ACL", user...).Error(); err != nil {
			t.Fatal(err)
		}
	}
	for url, shares := range map[string]bool{
		"redis://shop:hunter2@" + server.Addr:                      true,
		"redis://shop:hunter3@" + server.Addr:                      false,
		"redis://" + server.Addr:                                   false,
		"rediss://shop:hunter2@" + encrypted + "?skip_verify=true": true,
		"rediss://shop:hunter2@" + encrypted:                       false, // not signed by a trusted authority
		"redis://shop:hunter2@" + encrypted:                        false, // in clear text
	} {
		var log bytes.Buffer
		r, err := ratelimit.NewRedis(ratelimit.RedisConfig{
			URL: url, Environment: animalstore.Production, Store: newMemoryStore(), Now: time.Now, Log: slog.New(slog.NewTextHandler(&log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		if shares {
			eventuallyShares(t, r)
		}
		r.Close()
		if got := !r.Stats().Fallback; got != shares || strings.Contains(log.String(), "hunter") {
			t.Errorf("%s: shares %t, want %t; the log:\n%s", url, got, shares, &log)
		}
	}
}

// eventuallyShares waits until r uses Redis. A busy machine may need several attempts to
// connect.
func eventuallyShares(t *testing.T, r *ratelimit.Redis) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	testenv.Eventually(t, "Redis is used", func() bool { return !r.Stats().Fallback })
	cancel()
	running.Wait()
}

// TestDeploymentsAreSeparate_Slow: key 1 of staging isn't key 1 of production.
func TestDeploymentsAreSeparate_Slow(t *testing.T) {
	server := redistest.Start(t)
	for _, env := range []animalstore.Environment{animalstore.Production, animalstore.Staging} {
		r, err := ratelimit.NewRedis(ratelimit.RedisConfig{URL: server.URL(), Environment: env, Store: newMemoryStore(), Now: time.Now, Log: discard})
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if d := mustTake(t, r, enterprise(1, 1, 10)); !d.Allowed {
			t.Errorf("%s: got %+v, want the first request admitted", env, d)
		}
	}
}
