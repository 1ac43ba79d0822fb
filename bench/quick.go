package main

import "strings"

// quick compares the release build with what net/http can do at best, and group
// commit with one transaction per request. With -base it also compares it with
// the build of another commit.
func quick(b *bench) []*table {
	b.prepare()
	ours := b.startCopy("ours", b.release)
	s, database := b.seededCopy(oneByOne, 1)
	single := b.startSelf(s, "variant", database, oneByOne)
	bare := b.startBare("bare", ours, firstPages(ourAPI, b.pets), cursorPages(ourAPI, b.pets), gets(ourAPI, b.pets))
	servers := []*server{ours, bare}
	if b.base != "" {
		servers = append(servers, b.startBase())
	}
	r := &report{bench: b}
	for _, name := range []string{"first", "cursor", "get", "create1", "create16", "create128", "mix"} {
		racing := servers
		if strings.HasPrefix(name, "create") {
			racing = append(servers[:len(servers):len(servers)], single)
		}
		r.results = append(r.results, b.race(workloadNamed(name), racing...)...)
	}
	return r.tables()
}

// startCopy starts a build of the service on its own copy of the seeded store.
func (b *bench) startCopy(name, bin string, flags ...string) *server {
	s, database := b.seededCopy(name, 1)
	return b.startBuild(s, bin, database, flags...)
}
