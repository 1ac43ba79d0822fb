package main

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const (
	// pool is how many cursors and ids are asked for: far more than any cache
	// of pages would hold.
	pool        = 5000
	connections = 32
	newPet      = `{"name":"Rex the dog 4711","categoryId":7,"status":"available"}`
)

// quick holds the release build to what net/http can do at best, and group
// commit to a transaction a request.
func quick(ctx context.Context, o options, work string) (*table, error) {
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
	key, err := makeKey(ctx, release, file)
	if err != nil {
		return nil, err
	}
	if err := copyFile(copied, file); err != nil {
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
	ours, err := serve(ctx, work, "release", release, file, key)
	if err != nil {
		return nil, err
	}
	defer ours.stop()
	oneByOne, err := serve(ctx, work, "one-by-one", single, copied, key)
	if err != nil {
		return nil, err
	}
	defer oneByOne.stop()
	loads, err := writeLoads(work, o.animals)
	if err != nil {
		return nil, err
	}
	bare, err := startBare(ctx, work, ours, oneByOne, loads)
	if err != nil {
		return nil, err
	}
	defer bare.stop()

	t := &table{head: "BESIDE\tLOAD\tCONNECTIONS\tOURS/S\tOTHER/S\tRATIO\tMARK\t\tCPU µs OURS\tOTHER\tRATIO"}
	race := func(l load, connections int, others map[*server]bar) error {
		contestants := []contestant{{ours, l.file}}
		for _, s := range []*server{bare, oneByOne} {
			if _, ok := others[s]; ok {
				contestants = append(contestants, contestant{s, l.file})
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
	return t, nil
}

// load is a kind of traffic.
type load struct {
	name     string
	file     string
	requests []string
}

type loads struct{ first, cursor, get, create, mix load }

func writeLoads(work string, animals int) (loads, error) {
	random := rand.New(rand.NewPCG(3, 4))
	l := loads{
		first:  load{name: "list 20, first page", requests: []string{"GET /v1/pets"}},
		cursor: load{name: "list 20, random cursor"},
		get:    load{name: "get, random id"},
		create: load{name: "create", requests: []string{"POST /v1/pets " + newPet}},
		mix:    load{name: "mix: 30 first, 30 cursor, 30 get, 10 create"},
	}
	for i := range pool {
		l.cursor.requests = append(l.cursor.requests, "GET "+cursorURI(randomPosition(random, animals), ""))
		l.get.requests = append(l.get.requests, "GET "+petURI(random, animals))
		from := []load{l.first, l.cursor, l.get}[i%3]
		if i%10 == 9 {
			from = l.create
		}
		l.mix.requests = append(l.mix.requests, from.requests[len(from.requests)-1])
	}
	for i, one := range []*load{&l.first, &l.cursor, &l.get, &l.create, &l.mix} {
		one.file = filepath.Join(work, fmt.Sprintf("requests-%d", i))
		if err := writeRequests(one.file, one.requests); err != nil {
			return l, err
		}
	}
	return l, nil
}

// randomPosition is an id below which there are at least two pages.
func randomPosition(random *rand.Rand, animals int) int64 {
	return 50 + random.Int64N(int64(animals)-50)
}

func petURI(random *rand.Rand, animals int) string {
	return fmt.Sprintf("/v1/pets/%d", 1+random.IntN(animals))
}

// startBare captures what ours answers to every read of the loads, and a create
// that goes to another server so that ours stays as it was seeded. It starts
// the bare server with that and makes sure that it answers the same.
func startBare(ctx context.Context, work string, ours, other *server, l loads) (*server, error) {
	say("capturing answers")
	if err := checkCursors(ours); err != nil {
		return nil, err
	}
	c, err := ours.dial()
	if err != nil {
		return nil, err
	}
	defer c.close()
	var captured []*answer
	for _, request := range slices.Concat(l.first.requests, l.cursor.requests, l.get.requests) {
		a, err := c.do("GET", request[len("GET "):], "")
		if err != nil {
			return nil, err
		}
		if a.Status != 200 {
			return nil, fmt.Errorf("%s, not 200: %s", a, a.Body)
		}
		captured = append(captured, a)
	}
	created, err := other.ask("POST", "/v1/pets", newPet)
	if err != nil {
		return nil, err
	}
	if created.Status != 201 {
		return nil, fmt.Errorf("%s, not 201: %s", created, created.Body)
	}
	captured = append(captured, created)
	text, err := json.Marshal(captured)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(work, "answers.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	bare, err := start(ctx, work, "bare", ours.key, func(addr string) []string {
		return []string{self, "bare", addr, file}
	})
	if err != nil {
		return nil, err
	}
	for _, want := range []*answer{captured[0], captured[1], captured[len(captured)-2], created} {
		body := ""
		if want.Method == "POST" {
			body = newPet
		}
		got, err := bare.ask(want.Method, want.URI, body)
		if err == nil && !got.same(want) {
			err = fmt.Errorf("the bare server answers differently\n got %s %q %q\nwant %s %q %q", got, got.Fields, got.Body, want, want.Fields, want.Body)
		}
		if err != nil {
			bare.stop()
			return nil, err
		}
	}
	return bare, nil
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
