package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"
)

const (
	distantWork = "distant"
	// distance is how long it takes to the distant database, and as long back.
	distance      = 25 * time.Millisecond
	distantPets   = 1000
	distantOthers = 1000 // creates of the other key at a time
	distantRounds = 3
	distantLength = 3 * time.Second
)

// measureDistant measures how long one key's creates take on a distant PostgreSQL, alone and
// while another key keeps a thousand creates in progress. A response to the first key that
// isn't a success ends the run.
func (b *bench) measureDistant() cost {
	pg := findPostgres(b)
	cluster, database := pg.runSeeded(b.amount(distantPets), false)
	defer cluster.stop()
	s := b.withKeys("distant", database, b.amount(distantPets), 2)
	keys := strings.Fields(string(must(os.ReadFile(s.keysFile))))
	far := must(url.Parse(database))
	far.Host = delayed(far.Host, distance)
	ours := pg.startBuild(s, b.release, far.String(), cluster)
	defer ours.stop()
	others := *ours
	others.key, others.rotateKeys = keys[1], false
	w := workload{distantWork, "creates of another key", b.amount(distantOthers), creates}
	file := b.writeRequests(w, &others)
	create := func(int) time.Duration {
		began := time.Now()
		ours.send(http.MethodPost, ours.api.create, newPet)
		return time.Since(began)
	}
	c := cost{what: fmt.Sprintf("create while another key has %s in progress, PostgreSQL %v away: median ms", grouped(distantOthers), distance),
		versus: "alone", bar: barFor(b.command, distantWork, "alone")}
	for range b.amount(distantRounds) {
		alone := whileRunning(func() { time.Sleep(b.length(distantLength)) }, create)
		busy := whileRunning(func() {
			t, err := b.load.turn(b.ctx, w, &others, file, b.length(distantLength))
			if !errors.As(err, &refusedError{}) { // it requests more than can be served in time
				check(err)
			}
			progress("distant: the other key created %.0f pets a second", t.perSecond())
		}, create)
		c.other, c.ours = append(c.other, median(alone)), append(c.ours, median(busy))
	}
	return c
}

// delayed starts a proxy to an address, which delivers everything later, and returns where
// it listens.
func delayed(addr string, by time.Duration) string {
	l := must(net.Listen("tcp", "127.0.0.1:0"))
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", addr)
			if err != nil {
				client.Close()
				continue
			}
			go forwardLater(client, server, by)
			go forwardLater(server, client, by)
		}
	}()
	return l.Addr().String()
}

// forwardLater copies what arrives until one connection ends, and closes both.
func forwardLater(from, to net.Conn, by time.Duration) {
	type piece struct {
		due  time.Time
		data []byte
	}
	pieces := make(chan piece, 1000)
	go func() {
		defer from.Close()
		defer to.Close()
		for p := range pieces {
			time.Sleep(time.Until(p.due))
			to.Write(p.data) // if it fails, reading ends too
		}
	}()
	defer close(pieces)
	for {
		data := make([]byte, 16<<10)
		n, err := from.Read(data)
		if err != nil {
			return
		}
		pieces <- piece{time.Now().Add(by), data[:n]}
	}
}
