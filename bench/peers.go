package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

// Parts of a run that are no workload for all.
const (
	partKeys        = "keys"
	partMemory      = "memory"
	partConnections = "connections"
	partGrowth      = "growth"
)

// contestantNames and partNames are what flags can choose from.
func contestantNames() []string {
	names := []string{"bare"}
	for _, other := range others {
		names = append(names, other.name)
	}
	return names
}

func partNames() []string {
	var names []string
	for _, w := range workloads {
		names = append(names, w.name)
	}
	return append(names, partKeys, partMemory, partConnections, partGrowth)
}

// peers holds the release build to a bare server and to what somebody might use
// in its place, and writes down the results.
func peers(ctx context.Context, o options, work string) ([]*table, error) {
	if err := raiseFileLimit(); err != nil {
		return nil, err
	}
	s, err := newSite(ctx, o, work)
	if err != nil {
		return nil, err
	}
	m, err := meet(ctx, s)
	if err != nil {
		return nil, err
	}
	defer m.stop()
	r := &report{options: o, when: time.Now(), entrants: m.entrants, skipped: m.skipped}
	for _, w := range workloads {
		if slices.Contains(o.workloads, w.name) {
			if err := m.run(ctx, r, w); err != nil {
				return nil, err
			}
		}
	}
	for _, part := range []struct {
		name string
		run  func(context.Context, *report) error
	}{{partKeys, m.runKeys}, {partMemory, m.runMemory}, {partConnections, m.runConnections}, {partGrowth, m.runGrowth}} {
		if slices.Contains(o.workloads, part.name) {
			if err := part.run(ctx, r); err != nil {
				return nil, err
			}
		}
	}
	tables := r.tables()
	sync, err := syncTime(work)
	if err != nil {
		return nil, err
	}
	tables[0].note("%s animals; a 4 KiB write and fsync takes %v here", grouped(o.animals), sync)
	m.gen.notes(tables[0])
	r.foreign = m.gen.foreignShare()
	return tables, r.write(s.root, tables)
}

// raiseFileLimit lets wrk and the servers have a thousand connections and more.
// Go gives children the limit it was started with, unless it is set.
func raiseFileLimit() error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return err
	}
	limit.Cur = limit.Max
	return syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit)
}

// meeting is all contestants at once, ours first.
type meeting struct {
	*site
	gen      *generator
	entrants []*entrant
	keys     string  // a file of the many keys of ours
	rest     float64 // MiB that ours took before any load
	skipped  []string
}

func meet(ctx context.Context, s *site) (m *meeting, err error) {
	m = &meeting{site: s}
	defer func() {
		if err != nil {
			m.stop()
		}
	}()
	if m.gen, err = newGenerator(s.work); err != nil {
		return m, err
	}
	ours, keysFile, err := startOurs(ctx, s)
	if err != nil {
		return m, err
	}
	m.entrants, m.keys = append(m.entrants, ours), keysFile
	if m.rest, _, err = ours.memory(); err != nil {
		return m, err
	}
	for _, other := range others {
		if !slices.Contains(s.contestants, other.name) {
			continue
		}
		e, err := other.start(ctx, s)
		if why := (skipped{}); errors.As(err, &why) {
			text := fmt.Sprintf("%s is left out: %v", other.name, why)
			say("%s", text)
			line, _, _ := strings.Cut(text, "\n")
			m.skipped = append(m.skipped, line)
			continue
		}
		if err != nil {
			return m, err
		}
		m.entrants = append(m.entrants, e)
		if err := checkReads(ours, e, s.animals); err != nil {
			return m, err
		}
	}
	if slices.Contains(s.contestants, "bare") {
		if err := m.addBare(ctx); err != nil {
			return m, err
		}
	}
	for _, e := range m.entrants {
		if e.name == "bare" {
			continue
		}
		if err := e.checkCreate(); err != nil {
			return m, err
		}
	}
	return m, nil
}

// addBare starts a bare server that knows the answers to all reads, beside ours
// in the order of contestants.
func (m *meeting) addBare(ctx context.Context) error {
	ours := m.entrants[0]
	reads := slices.Concat(firstPages(ourAPI, m.animals), statusPages(ourAPI, m.animals),
		cursorPages(ourAPI, m.animals), manyGets(ourAPI, m.animals))
	bare, err := startBare(ctx, m.work, ours.server, ours.server, reads)
	if err != nil {
		return err
	}
	m.entrants = slices.Insert(m.entrants, 1, &entrant{bare, ourAPI, "a net/http server that writes the same answers as ours and does nothing else", false})
	return nil
}

func (m *meeting) stop() {
	for _, e := range slices.Backward(m.entrants) {
		e.stop()
	}
}

// contestantsFor writes each entrant's requests to a file.
func (m *meeting) contestantsFor(w workload, entrants []*entrant) ([]contestant, error) {
	var all []contestant
	for _, e := range entrants {
		file := filepath.Join(m.work, fmt.Sprintf("requests-%s-%s", w.name, e.name))
		if err := writeRequests(file, w.requests(e.api, m.animals)); err != nil {
			return nil, err
		}
		all = append(all, contestant{server: e.server, file: file, peer: e.peer})
	}
	return all, nil
}

// run gives all contestants a workload.
func (m *meeting) run(ctx context.Context, r *report, w workload) error {
	all, err := m.contestantsFor(w, m.entrants)
	if err != nil {
		return err
	}
	turns, err := m.gen.race(ctx, m.options, w.title, w.connections, all...)
	if err != nil {
		return err
	}
	for i, e := range m.entrants {
		r.outcomes = append(r.outcomes, outcome{w.title, w.connections, e.name, turns[i], turns[0], w.bars[e.name]})
	}
	return nil
}

// workloadNamed is one of workloads.
func workloadNamed(name string) workload {
	return workloads[slices.IndexFunc(workloads, func(w workload) bool { return w.name == name })]
}

// runKeys has one server serve one key and many.
func (m *meeting) runKeys(ctx context.Context, r *report) error {
	w := workloadNamed("get")
	all, err := m.contestantsFor(w, m.entrants[:1])
	if err != nil {
		return err
	}
	many := all[0]
	many.keys = m.keys
	title := "get, one key and ten thousand"
	turns, err := m.gen.race(ctx, m.options, title, w.connections, all[0], many)
	if err != nil {
		return err
	}
	for i, name := range []string{"ours, one key", fmt.Sprintf("ours, %s keys", grouped(manyKeys))} {
		r.outcomes = append(r.outcomes, outcome{title, w.connections, name, turns[i], turns[0], bar{}})
	}
	return nil
}

// memoryBar is what the release build may hold in memory under load, in MiB.
var memoryBar = bar{atMost: 64}

// runMemory looks at the memory of ours after a load of reads and creates with
// many keys, and at what the others have come to.
func (m *meeting) runMemory(ctx context.Context, r *report) error {
	all, err := m.contestantsFor(workloadNamed("mix"), m.entrants[:1])
	if err != nil {
		return err
	}
	all[0].keys = m.keys
	for _, connections := range []int{connections, 128} {
		say("memory under a mix with %d keys, %d connections", manyKeys, connections)
		if _, err := m.gen.burst(ctx, all[0], connections, 3*time.Second); err != nil {
			return err
		}
	}
	info, err := os.Stat(m.release)
	if err != nil {
		return err
	}
	r.addSize("the binary", float64(info.Size())/(1<<20), bar{})
	r.addSize(fmt.Sprintf("ours at rest, %s animals, %s keys: resident", grouped(m.animals), grouped(manyKeys)), m.rest, bar{})
	for _, e := range m.entrants {
		if e.behind != nil { // what PostgreSQL shares would count once for each process
			continue
		}
		_, highest, err := e.memory()
		if err != nil {
			return err
		}
		limit := bar{}
		if e == m.entrants[0] {
			limit = memoryBar
		}
		r.addSize(e.name+" under load: highest resident", highest, limit)
	}
	return nil
}

// runConnections has ours and the bare server serve few clients and many.
func (m *meeting) runConnections(ctx context.Context, r *report) error {
	w := workloadNamed("cursor")
	var two []*entrant
	for _, e := range m.entrants {
		if e.name == "ours" || e.name == "bare" {
			two = append(two, e)
		}
	}
	all, err := m.contestantsFor(w, two)
	if err != nil {
		return err
	}
	for _, connections := range []int{1, 10, 100, 1000} {
		turns, err := m.gen.race(ctx, m.options, w.title, connections, all...)
		if err != nil {
			return err
		}
		for i, e := range two {
			r.connections = append(r.connections, outcome{w.title, connections, e.name, turns[i], turns[0], bar{}})
		}
	}
	_, highest, err := m.entrants[0].memory()
	if err != nil {
		return err
	}
	r.addSize("ours after 1,000 connections: highest resident", highest, bar{})
	return nil
}

// runGrowth is bench growth, as one of the parts.
func (m *meeting) runGrowth(ctx context.Context, r *report) error {
	o := m.options
	o.animals = manyAnimals
	tables, err := growth(ctx, o, m.work)
	r.growth = tables
	return err
}
