package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
)

const (
	fewAnimals  = 100_000
	manyAnimals = 5_000_000
	starts      = 7
	// scattered is how many places are read. They lie on many more pages than
	// SQLite keeps in memory, so a read never profits from the one before.
	scattered = 30_000
)

// growth holds reads in a large store to what they cost in a small one, with
// the cache of pages off, and a start to a time.
func growth(ctx context.Context, o options, work string) ([]*table, error) {
	release, err := build(ctx, work, "release")
	if err != nil {
		return nil, err
	}
	uncached, err := build(ctx, work, "uncached", "animalstore/internal/api.pageCache=off")
	if err != nil {
		return nil, err
	}
	gen, err := newGenerator(work)
	if err != nil {
		return nil, err
	}
	t := &table{title: "Growth", head: fmt.Sprintf("what\tat %s\tat %s\tratio\tmark\t", grouped(fewAnimals), grouped(o.animals))}
	var stores [2]*server
	for i, animals := range []int{fewAnimals, o.animals} {
		file, err := seeded(ctx, o, work, "animals", animals)
		if err != nil {
			return nil, err
		}
		database := "sqlite:" + file
		key, err := makeKey(ctx, release, database)
		if err != nil {
			return nil, err
		}
		if animals == o.animals {
			if err := timeStarts(ctx, t, work, release, database, key); err != nil {
				return nil, err
			}
		}
		stores[i], err = serve(ctx, work, fmt.Sprintf("uncached-%d", animals), uncached, database, key)
		if err != nil {
			return nil, err
		}
		defer stores[i].stop()
		if err := checkCursors(stores[i]); err != nil {
			return nil, err
		}
	}
	for _, read := range []struct {
		name string
		uri  func(random *rand.Rand, animals int) string
	}{
		{"list 20, random cursor", func(random *rand.Rand, animals int) string {
			return cursorURI(randomPosition(random, animals), "")
		}},
		{"list 20 of a rare status, random cursor", func(random *rand.Rand, animals int) string {
			// The lowest tenth alone holds more than a page of them.
			return cursorURI(int64(animals)/10+random.Int64N(int64(animals)*9/10), rare)
		}},
		{"get, random id", func(random *rand.Rand, animals int) string {
			return ourAPI.get(1 + random.Int64N(int64(animals)))
		}},
	} {
		var contestants []contestant
		for i, animals := range []int{fewAnimals, o.animals} {
			file := filepath.Join(work, fmt.Sprintf("requests-%d", i))
			if err := writeReads(file, animals, read.uri); err != nil {
				return nil, err
			}
			contestants = append(contestants, contestant{server: stores[i], file: file})
		}
		turns, err := gen.race(ctx, o, read.name, connections, contestants...)
		if err != nil {
			return nil, err
		}
		few, many := turns[0], turns[1]
		cpu := ratios(many, few, turn.cpuMicros)
		t.rows = append(t.rows, fmt.Sprintf("%s: CPU µs a request\t%.1f\t%.1f\t%s\t%s", read.name,
			total(few).cpuMicros(), total(many).cpuMicros(), spread(cpu), t.verdict(bar{atMost: 1.15}, median(cpu), "")))
		wall := ratios(many, few, turn.micros)
		t.rows = append(t.rows, fmt.Sprintf("%s: µs from answer to answer\t%.1f\t%.1f\t%s\t%s", read.name,
			total(few).micros(), total(many).micros(), spread(wall), t.verdict(bar{atMost: 1.15}, median(wall), "")))
	}
	t.note("The cache of pages is off, except for the starts; %d connections", connections)
	gen.notes(t)
	return []*table{t}, nil
}

func writeReads(file string, animals int, uri func(*rand.Rand, int) string) error {
	random := rand.New(rand.NewPCG(5, uint64(animals)))
	requests := make([]string, scattered)
	for i := range requests {
		requests[i] = "GET " + uri(random, animals)
	}
	return writeRequests(file, requests)
}

// timeStarts adds a row on how long the release build takes from exec to its
// first page of animals.
func timeStarts(ctx context.Context, t *table, work, bin, database, key string) error {
	say("starting %d times", starts)
	var took []float64
	for range starts {
		s, err := serve(ctx, work, "release", bin, database, key)
		if err != nil {
			return err
		}
		s.stop()
		took = append(took, float64(s.took.Microseconds())/1000)
	}
	t.rows = append(t.rows, fmt.Sprintf("start to first answer: ms\t\t%s\t\t%s", spread(took), t.verdict(bar{atMost: 100}, median(took), "")))
	return nil
}
