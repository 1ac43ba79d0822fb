package ratelimit_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/ratelimit/redistest"
)

// BenchmarkRedisTake measures a decision by Redis when requests of a thousand keys are
// decided concurrently, with the processor time that this process and Redis spend on it.
func BenchmarkRedisTake(b *testing.B) {
	for _, n := range []int{1, 16, 128} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			server := redistest.Start(b)
			r := newRedis(b, server, newMemoryStore(), time.Now)
			keys := make([]*animalstore.Key, 1_000)
			for i := range keys {
				keys[i] = enterprise(int64(i+1), 1_000_000_000, 1_000_000_000)
			}
			take := func(times int64) {
				var taken atomic.Int64
				var wg sync.WaitGroup
				for range n {
					wg.Go(func() {
						for i := taken.Add(1); i <= times; i = taken.Add(1) {
							if _, err := r.Take(context.Background(), keys[i%int64(len(keys))]); err != nil {
								b.Error(err)
								return
							}
						}
					})
				}
				wg.Wait()
			}
			take(1_000)
			ours, its := ownCPU(b), processCPU(b, server.Pid())
			b.ResetTimer()
			take(int64(b.N))
			b.StopTimer()
			b.ReportMetric(float64((ownCPU(b)-ours).Nanoseconds())/float64(b.N), "own-ns/op")
			b.ReportMetric(float64((processCPU(b, server.Pid())-its).Nanoseconds())/float64(b.N), "redis-ns/op")
			if s := r.Stats(); s.FallbackDecisions > 0 {
				b.Errorf("%d decisions were made without Redis", s.FallbackDecisions)
			}
		})
	}
}

func ownCPU(t testing.TB) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// processCPU reads a process's processor time, which Linux counts in hundredths of a
// second. It is 0 elsewhere.
func processCPU(t testing.TB, pid int) time.Duration {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	fields := strings.Fields(rest)
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * 10 * time.Millisecond
}
