package main

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"animalstore/internal/testenv"
)

// TestMain also runs the bare server, which a run starts as itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "bare" {
		fmt.Fprintln(os.Stderr, run(os.Args[1:]))
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// TestEveryPart_Slow runs all parts of all comparisons with tiny stores, without the peers that
// have to be built. What it measures means nothing.
func TestEveryPart_Slow(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the benchmarks need Linux")
	}
	for _, program := range []string{"wrk", "taskset", "redis-server"} {
		testenv.Need(t, program)
	}
	dir, err := os.MkdirTemp("", "animalstore-bench-test-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o711); err != nil { // PostgreSQL runs as another user
		t.Fatal(err)
	}
	release, err := testenv.Build(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []struct {
		args    []string
		measure func(*report)
		want    []string // titles of rows
	}{
		{[]string{"peers", "-servers", "bare,postgres", "-results", t.TempDir()}, peers, append(append(titles(workloads, ""),
			"first page, ten thousand keys", "durable create, on one core", "memory under load", "large pages of four keys, postgres"), titles(growthWorkloads, ", 11,000 pets")...)},
		{[]string{"quick", "-workloads", "first,uploads,batches,deliveries,distant"}, func(r *report) {
			r.prepare()
			r.measureQuick(release)
		}, []string{"first page, PostgreSQL", "12 megapixels", "in batches", "quick receiver, postgres", "25ms away"}},
		// On SQLite, peers has run it.
		{[]string{"growth", "-engines", "postgres", "-workloads", "cursor,name"}, growth, []string{"random cursor, 11,000 pets, PostgreSQL"}},
		{[]string{"ceiling", "-instances", "1,2"}, ceiling, []string{"creates, 128", "in batches of 100", "published, and sent to 10", "deliveries to 8", "Connections"}},
		{[]string{"profile"}, func(r *report) {
			if n := len(r.bench.collectProfiles(release)); n != len(profileWork) {
				t.Errorf("got %d profiles, want %d", n, len(profileWork))
			}
		}, nil},
	} {
		t.Run(part.args[0], func(t *testing.T) {
			b := tiny(t, dir, part.args)
			b.release = release
			var out strings.Builder
			if err := b.report(&out, func(r *report) {
				b.open()
				part.measure(r)
			}); err != nil {
				t.Fatalf("%v\n%s", err, &out)
			}
			for _, title := range part.want {
				if !strings.Contains(out.String(), title) {
					t.Errorf("got no row %q:\n%s", title, &out)
				}
			}
		})
	}
}

func titles(of []workload, suffix string) (all []string) {
	for _, w := range of {
		all = append(all, w.title+suffix)
	}
	return all
}

// tiny returns a benchmark with tiny stores that measures as briefly as possible. Those with
// the same dir share what they seed there.
func tiny(t *testing.T, dir string, args []string) *bench {
	name, o, err := parseOptions(append(args, "-rounds", "1", "-pets", "5000", "-dir", dir))
	if err != nil {
		t.Fatal(err)
	}
	o.few, o.many, o.divisor, o.burst, o.warmup = 10_000, 11_000, 100, 30*time.Millisecond, 0
	b := &bench{options: o, ctx: t.Context(), command: name}
	t.Cleanup(b.close)
	return b
}
