package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"
)

// quick holds the release build to what net/http can do at best, and group
// commit to a transaction a request.
func quick(ctx context.Context, o options, work string) ([]*table, error) {
	release, err := build(ctx, work, "release")
	if err != nil {
		return nil, err
	}
	single, err := build(ctx, work, "one-by-one", "animalstore/internal/db/sqlite.maxBatch=1")
	if err != nil {
		return nil, err
	}
	say("seeding %d animals", o.animals)
	file, copied := filepath.Join(work, "release.db"), filepath.Join(work, "one-by-one.db")
	if err := seed(ctx, file, o.animals); err != nil {
		return nil, err
	}
	key, err := makeKey(ctx, release, "sqlite:"+file)
	if err != nil {
		return nil, err
	}
	if err := copyTree(ctx, copied, file); err != nil {
		return nil, err
	}
	sync, err := syncTime(work)
	if err != nil {
		return nil, err
	}
	gen, err := newGenerator(work)
	if err != nil {
		return nil, err
	}
	ours, err := serve(ctx, work, "release", release, "sqlite:"+file, key)
	if err != nil {
		return nil, err
	}
	defer ours.stop()
	oneByOne, err := serve(ctx, work, "one-by-one", single, "sqlite:"+copied, key)
	if err != nil {
		return nil, err
	}
	defer oneByOne.stop()
	loads, err := writeLoads(work, o.animals)
	if err != nil {
		return nil, err
	}
	bare, err := startBare(ctx, work, ours, oneByOne, slices.Concat(loads.first.requests, loads.cursor.requests, loads.get.requests))
	if err != nil {
		return nil, err
	}
	defer bare.stop()

	t := &table{head: "BESIDE\tLOAD\tCONNECTIONS\tOURS/S\tOTHER/S\tRATIO\tMARK\t\tCPU µs OURS\tOTHER\tRATIO"}
	race := func(l load, connections int, others map[*server]bar) error {
		contestants := []contestant{{server: ours, file: l.file}}
		for _, s := range []*server{bare, oneByOne} {
			if _, ok := others[s]; ok {
				contestants = append(contestants, contestant{server: s, file: l.file})
			}
		}
		turns, err := gen.race(ctx, o, l.name, connections, contestants...)
		if err != nil {
			return err
		}
		for i, c := range contestants[1:] {
			speed := ratios(turns[0], turns[i+1], turn.perSecond)
			cpu := ratios(turns[0], turns[i+1], turn.cpuMicros)
			a, b := total(turns[0]), total(turns[i+1])
			t.rows = append(t.rows, fmt.Sprintf("%s\t%s\t%d\t%.0f\t%.0f\t%s\t%s\t%.1f\t%.1f\t%.2f", c.name, l.name, connections,
				a.perSecond(), b.perSecond(), spread(speed), t.verdict(others[c.server], median(speed), ""), a.cpuMicros(), b.cpuMicros(), median(cpu)))
		}
		return nil
	}
	for _, r := range []struct {
		load        load
		connections int
		others      map[*server]bar
	}{
		{loads.first, connections, map[*server]bar{bare: {atLeast: 0.85}}},
		{loads.cursor, connections, map[*server]bar{bare: {atLeast: 0.45}}},
		{loads.get, connections, map[*server]bar{bare: {atLeast: 0.60}}},
		{loads.create, 16, map[*server]bar{bare: {}, oneByOne: {atLeast: 2.5}}},
		{loads.create, 128, map[*server]bar{bare: {}, oneByOne: {atLeast: 3.5}}},
		{loads.mix, connections, map[*server]bar{bare: {}}},
	} {
		if err := race(r.load, r.connections, r.others); err != nil {
			return nil, err
		}
	}
	t.note("%d animals; a 4 KiB write and fsync takes %v here", o.animals, sync)
	gen.notes(t)
	return []*table{t}, nil
}

// load is a kind of traffic.
type load struct {
	name     string
	file     string
	requests []string
}

type loads struct{ first, cursor, get, create, mix load }

func writeLoads(work string, n int) (loads, error) {
	first, cursor, get, create := firstPages(ourAPI, n), cursorPages(ourAPI, n), gets(ourAPI, n), creates(ourAPI, n)
	l := loads{
		first:  load{name: "list 20, first page", requests: first},
		cursor: load{name: "list 20, random cursor", requests: cursor},
		get:    load{name: "get, random id", requests: get},
		create: load{name: "create", requests: create},
		mix: load{name: "mix: 30 first, 30 cursor, 30 get, 10 create",
			requests: mix(part{3, first}, part{3, cursor}, part{3, get}, part{1, create})},
	}
	for i, one := range []*load{&l.first, &l.cursor, &l.get, &l.create, &l.mix} {
		one.file = filepath.Join(work, fmt.Sprintf("requests-%d", i))
		if err := writeRequests(one.file, one.requests); err != nil {
			return l, err
		}
	}
	return l, nil
}

// syncTime is how long it takes to have a page on disk: what a create costs
// where it does not share it.
func syncTime(dir string) (time.Duration, error) {
	f, err := os.Create(filepath.Join(dir, "sync"))
	if err != nil {
		return 0, err
	}
	defer f.Close()
	var took []time.Duration
	page := make([]byte, 4096)
	for range 50 {
		start := time.Now()
		if _, err := f.Write(page); err != nil {
			return 0, err
		}
		if err := f.Sync(); err != nil {
			return 0, err
		}
		took = append(took, time.Since(start))
	}
	return median(took).Round(time.Microsecond), nil
}
