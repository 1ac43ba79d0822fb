package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// steadyConn is a connection of runSteady.
type steadyConn struct {
	*os.File
	busy bool          // its request has no response yet
	due  time.Duration // when that request was to be sent, after the start
	got  []byte        // of the response
}

// runSteady sends the requests of a file at a fixed rate, and measures each from when it
// was due. wrk sends no request before it has a response to the one before: the slower a
// server is, the fewer requests it gets, and the fewer of them wait.
//
// A single thread waits for responses and for the next request, because Go's own timers
// and scheduler would add more than what is measured.
func runSteady(ctx context.Context, w workload, s *server, file string, length time.Duration) (t turn, used time.Duration, err error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	check(unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0)) // ns by which it may wake up late
	requests, buffer := steadyRequests(s, file), make([]byte, 64<<10)
	conns, poll := dialSteady(s, w.connections)
	defer func() {
		for _, c := range conns {
			c.Close()
		}
	}()
	interval := time.Duration(float64(time.Second) / s.rate)
	total, first := max(1, int(length/interval)), rand.IntN(len(requests))
	took := make([]time.Duration, 0, total)
	cpu, start := cpuTime(), time.Now()
	for sent := 0; len(took) < total; {
		due, now := time.Duration(sent)*interval, time.Since(start)
		free := slices.IndexFunc(conns, func(c steadyConn) bool { return !c.busy })
		wait := 10 * time.Second // for a response
		if sent < total && free >= 0 {
			if wait = due - now; wait <= 0 {
				must(unix.Write(int(poll[free].Fd), requests[(first+sent)%len(requests)]))
				conns[free].busy, conns[free].due, conns[free].got = true, due, conns[free].got[:0]
				sent++
				continue
			}
		}
		timeout := unix.NsecToTimespec(int64(wait))
		n, err := unix.Ppoll(poll, &timeout, nil)
		switch {
		case ctx.Err() != nil:
			return t, 0, ctx.Err()
		case err != nil: // interrupted by a signal
		case n == 0 && wait == 10*time.Second:
			return t, 0, fmt.Errorf("%s sent no response for %v", s.name, wait)
		case n > 0:
			for i := range conns {
				if poll[i].Revents == 0 {
					continue
				}
				if err := conns[i].receive(int(poll[i].Fd), buffer); err != nil {
					return t, 0, fmt.Errorf("%s: %w", s.name, err)
				}
				if !conns[i].busy {
					took = append(took, time.Since(start)-conns[i].due)
				}
			}
		}
	}
	slices.Sort(took)
	return turn{requests: total, seconds: time.Since(start).Seconds(), p50: took[total/2], p99: took[total*99/100]}, cpuTime() - cpu, nil
}

// receive reads a part of a response. After the last one the connection isn't busy.
func (c *steadyConn) receive(fd int, buffer []byte) error {
	n, err := unix.Read(fd, buffer)
	if err != nil || n == 0 {
		return errors.Join(errors.New("the connection ended"), err)
	}
	c.got = append(c.got, buffer[:n]...)
	head, body, found := bytes.Cut(c.got, []byte("\r\n\r\n"))
	if !found {
		return nil
	}
	status, fields, _ := bytes.Cut(head, []byte("\r\n"))
	if !bytes.HasPrefix(status, []byte("HTTP/1.1 20")) {
		return fmt.Errorf("got %s, not a success", status)
	}
	for field := range bytes.SplitSeq(fields, []byte("\r\n")) {
		if name, value, _ := bytes.Cut(field, []byte(": ")); bytes.EqualFold(name, []byte("Content-Length")) {
			length, err := strconv.Atoi(string(value))
			c.busy = len(body) < length
			return err
		}
	}
	return errors.New("got a response without a length")
}

// steadyRequests are the requests of a file as they are sent.
func steadyRequests(s *server, file string) (requests [][]byte) {
	for line := range strings.Lines(string(must(os.ReadFile(file)))) {
		fields := append(strings.SplitN(strings.TrimSpace(line), " ", 3), "")
		request := fmt.Appendf(nil, "%s %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n", fields[0], fields[1], s.addr, s.key)
		if body := fields[2]; body != "" { // as wrk does
			request = fmt.Appendf(request, "Content-Length: %d\r\n\r\n%s", len(body), body)
		} else {
			request = append(request, "\r\n"...)
		}
		requests = append(requests, request)
	}
	return requests
}

// dialSteady opens connections, and what is needed to wait for them.
func dialSteady(s *server, count int) (conns []steadyConn, poll []unix.PollFd) {
	for range count {
		conn := must(net.Dial("tcp", s.addr))
		file := must(conn.(*net.TCPConn).File())
		conn.Close()
		conns = append(conns, steadyConn{File: file})
		poll = append(poll, unix.PollFd{Fd: int32(file.Fd()), Events: unix.POLLIN})
	}
	return conns, poll
}
