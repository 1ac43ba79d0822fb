package ratelimit_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"sync"
	"time"
)

// fakeRedis admits every request. Its connections exist only in memory, so that in a
// testing/synctest bubble, waiting for it takes no time, and a busy machine makes no
// difference.
type fakeRedis struct {
	mu     sync.Mutex
	frozen bool   // it reads, but doesn't answer
	broken string // the reply to a script, unless ""
	conns  []net.Conn
}

func (r *fakeRedis) dial() net.Conn {
	client, server := net.Pipe()
	r.mu.Lock()
	r.conns = append(r.conns, server)
	r.mu.Unlock()
	go r.serve(server)
	return client
}

func (r *fakeRedis) freeze() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.frozen = true
}

// breakReplies makes it reply to every script with this.
func (r *fakeRedis) breakReplies(reply string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.broken = reply
}

// drop closes all connections.
func (r *fakeRedis) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.conns {
		c.Close()
	}
	r.conns = nil
}

func (r *fakeRedis) serve(conn net.Conn) {
	in, out := bufio.NewReader(conn), make(chan string, 10_000)
	defer close(out)
	go func() {
		for reply := range out {
			io.WriteString(conn, reply)
		}
	}()
	for {
		command, err := readCommand(in)
		if err != nil {
			return
		}
		r.mu.Lock()
		switch {
		case r.frozen:
		case r.broken != "" && command[0] == "EVALSHA":
			out <- r.broken
		default:
			out <- replyTo(command)
		}
		r.mu.Unlock()
	}
}

// replyTo is the reply of a Redis whose script admits everything.
func replyTo(command []string) string {
	switch command[0] {
	case "HELLO":
		return "%2\r\n+version\r\n+7.0.0\r\n+proto\r\n:3\r\n"
	case "EVALSHA":
		outcome := "read"
		if command[4] == "take" {
			outcome = "admitted"
		}
		now := time.Now()
		text := fmt.Sprintf("%s %d 1 %d 0 1 %d 0 0 0 0 0 0", outcome, now.UnixMilli(), now.Add(time.Minute).UnixMilli(), now.Add(time.Hour).UnixMilli())
		return bulk(text)
	}
	return "+PONG\r\n"
}

// readCommand reads an array of bulk strings.
func readCommand(in *bufio.Reader) (command []string, err error) {
	number := func() int {
		var line string
		if line, err = in.ReadString('\n'); err != nil {
			return 0
		}
		var n int
		n, err = strconv.Atoi(strings.TrimSpace(line[1:]))
		return n
	}
	for range number() {
		part := make([]byte, number()+2)
		if err != nil {
			return nil, err
		}
		if _, err = io.ReadFull(in, part); err != nil {
			return nil, err
		}
		command = append(command, string(part[:len(part)-2]))
	}
	return command, err
}
