package ratelimit_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"animalstore/internal/ratelimit"

	"github.com/gomodule/redigo/redis"
)

// fakeRedis is the other end of a pipeline. It reads commands as they come, and its
// script treats them one after the other.
type fakeRedis struct {
	conn     net.Conn
	commands chan []string
	running  sync.WaitGroup

	mu   sync.Mutex
	seen map[string]int // how often each command was read
}

// startFake returns a pipeline and its fake Redis, which both end with the test. treat
// is called with each command, and ends the connection by returning false.
func startFake(t *testing.T, treat func(f *fakeRedis, command []string) bool) (*ratelimit.Pipeline, *fakeRedis) {
	ours, theirs := net.Pipe()
	f := &fakeRedis{conn: theirs, commands: make(chan []string, 10_000), seen: map[string]int{}}
	f.running.Go(func() { // a command has the form of an array in a reply
		defer close(f.commands)
		for in := redis.NewConn(theirs, 0, 0); ; {
			command, err := redis.Strings(in.Receive())
			if err != nil {
				return
			}
			f.mu.Lock()
			f.seen[strings.Join(command, " ")]++
			f.mu.Unlock()
			f.commands <- command
		}
	})
	f.running.Go(func() {
		defer theirs.Close()
		for command := range f.commands {
			if !treat(f, command) {
				return
			}
		}
	})
	p := ratelimit.NewPipeline(ours)
	t.Cleanup(func() {
		p.Close()
		f.running.Wait()
	})
	return p, f
}

// reply replies with a text, and reports whether the connection still works.
func (f *fakeRedis) reply(text string) bool {
	_, err := fmt.Fprintf(f.conn, "$%d\r\n%s\r\n", len(text), text)
	return err == nil
}

// atMostOnce checks that no command was sent twice.
func (f *fakeRedis) atMostOnce(t *testing.T) {
	t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for command, n := range f.seen {
		if n > 1 {
			t.Errorf("got %q sent %d times, want at most once", command, n)
		}
	}
}

// callers makes concurrent calls with numbers from 0 to n-1 and returns their results.
func callers(p *ratelimit.Pipeline, n int, timeout time.Duration) (replies []string, errs []error, took []time.Duration) {
	replies, errs, took = make([]string, n), make([]error, n), make([]time.Duration, n)
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			began := time.Now()
			replies[i], errs[i] = p.Do(timeout, "ECHO", fmt.Sprint("call ", i))
			took[i] = time.Since(began)
		})
	}
	wg.Wait()
	return replies, errs, took
}

// TestDelayedReply: a reply that is late but in time delays others and is nobody
// else's.
func TestDelayedReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, f := startFake(t, func(f *fakeRedis, command []string) bool {
			if command[1] == "call 7" {
				time.Sleep(ratelimit.RequestTimeout - time.Millisecond)
			}
			return f.reply(command[1])
		})
		replies, errs, _ := callers(p, 50, ratelimit.RequestTimeout)
		for i := range replies {
			if want := fmt.Sprint("call ", i); replies[i] != want || errs[i] != nil {
				t.Errorf("got %q, %v, want %q", replies[i], errs[i], want)
			}
		}
		f.atMostOnce(t)
	})
}

// TestLateReply: when a reply is later than a request may wait, all who wait for one
// fail at that moment, and nobody gets a reply that comes afterwards.
func TestLateReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		late := false
		p, f := startFake(t, func(f *fakeRedis, command []string) bool {
			if command[1] == "call 7" {
				time.Sleep(ratelimit.RequestTimeout + time.Millisecond)
				late = true
			}
			return f.reply(command[1])
		})
		replies, errs, took := callers(p, 50, ratelimit.RequestTimeout)
		failed := 0
		for i := range replies {
			switch want := fmt.Sprint("call ", i); {
			case errs[i] == nil && replies[i] == want && took[i] == 0:
			case errs[i] != nil && took[i] == ratelimit.RequestTimeout:
				failed++
			default:
				t.Errorf("got %q, %v after %v, want %q at once or an error after %v", replies[i], errs[i], took[i], want, ratelimit.RequestTimeout)
			}
		}
		if errs[7] == nil || failed == 0 {
			t.Errorf("got %q and %d failures, want that call and others to fail", replies[7], failed)
		}
		time.Sleep(time.Second) // on the test's own clock
		synctest.Wait()
		_, errs, took = callers(p, 3, ratelimit.RequestTimeout)
		if errs[0] == nil || errs[1] == nil || errs[2] == nil || max(took[0], took[1], took[2]) > 0 || !late {
			t.Errorf("on a connection that was given up: got %v after %v, want errors at once", errs, took)
		}
		f.atMostOnce(t)
	})
}

// TestShorterDeadlineBehindOthers: what remains of a request's time may be less than
// that of the calls before it.
func TestShorterDeadlineBehindOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := startFake(t, func(*fakeRedis, []string) bool { return true }) // without a reply
		var wg sync.WaitGroup
		wg.Go(func() { p.Do(time.Minute, "ECHO", "patient") })
		synctest.Wait()
		began := time.Now()
		_, err := p.Do(10*time.Millisecond, "ECHO", "hurried")
		if took := time.Since(began); err == nil || took != 10*time.Millisecond {
			t.Errorf("got %v after %v, want an error after 10 ms", err, took)
		}
		wg.Wait()
	})
}

// TestBlockedWrite: a request doesn't wait longer because Redis doesn't even read.
func TestBlockedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe() // without a buffer
		defer theirs.Close()
		p := ratelimit.NewPipeline(ours)
		_, errs, took := callers(p, 5, ratelimit.RequestTimeout)
		for i := range errs {
			if errs[i] == nil || took[i] != ratelimit.RequestTimeout {
				t.Errorf("got %v after %v, want an error after %v", errs[i], took[i], ratelimit.RequestTimeout)
			}
		}
	})
}

// TestUnexpectedReply: after a reply without a call, the next call would get a reply
// that isn't its own.
func TestUnexpectedReply(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, f := startFake(t, func(f *fakeRedis, command []string) bool { return f.reply(command[1]) })
		if got, err := p.Do(ratelimit.RequestTimeout, "ECHO", "one"); got != "one" || err != nil {
			t.Errorf("got %q, %v, want one", got, err)
		}
		f.reply("surprise")
		<-p.Ended
		if got, err := p.Do(ratelimit.RequestTimeout, "ECHO", "two"); err == nil {
			t.Errorf("got %q after a reply without a call, want an error", got)
		}
	})
}

// TestUnknownScript: a Redis that doesn't know the script is sent the whole, within the
// same time.
func TestUnknownScript(t *testing.T) {
	for _, c := range []struct {
		replies bool
		took    time.Duration
	}{{true, 50 * time.Millisecond}, {false, ratelimit.RequestTimeout}} {
		synctest.Test(t, func(t *testing.T) {
			p, f := startFake(t, func(f *fakeRedis, command []string) bool {
				switch {
				case command[0] == "EVALSHA":
					time.Sleep(50 * time.Millisecond)
					_, err := fmt.Fprint(f.conn, "-NOSCRIPT No matching script. Please use EVAL.\r\n")
					return err == nil
				case c.replies:
					return f.reply(strings.Join(command[3:], " "))
				}
				return true
			})
			began := time.Now()
			got, err := p.RunScript(ratelimit.RequestTimeout, "key", "argument")
			if ok := err == nil && got == "key argument"; ok != c.replies || time.Since(began) != c.took {
				t.Errorf("got %q, %v after %v, want a reply %v after %v", got, err, time.Since(began), c.replies, c.took)
			}
			f.atMostOnce(t)
			if len(f.seen) != 2 {
				t.Errorf("got %d commands, want EVALSHA and EVAL", len(f.seen))
			}
		})
	}
}

// FuzzPipeline has a fake Redis reply, delay, refuse, cut and stammer as a script says.
// Each caller must get its own reply, its own refusal or an error in time, and nothing
// may be sent twice.
func FuzzPipeline(f *testing.F) {
	f.Add([]byte{})
	random := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		script := make([]byte, 1+random.IntN(60))
		for i := range script {
			script[i] = byte(random.Uint32())
			if i%3 > 0 { // mostly plain replies, or nothing lasts
				script[i] %= 8
			}
		}
		f.Add(script)
	}
	f.Fuzz(func(t *testing.T, script []byte) {
		if len(script) > 200 {
			t.Skip()
		}
		synctest.Test(t, func(t *testing.T) { runScripted(t, script) })
	})
}

func runScripted(t *testing.T, script []byte) {
	at := func(i int) int {
		if len(script) == 0 {
			return 0
		}
		return int(script[i%len(script)])
	}
	step := 0
	p, f := startFake(t, func(f *fakeRedis, command []string) bool {
		step++
		return f.treat(at(step), command[1])
	})
	var wg sync.WaitGroup
	var mu sync.Mutex
	var broken time.Time // when a call first failed
	for caller := range 1 + at(0)%20 {
		wg.Go(func() {
			for i := range 6 {
				time.Sleep(time.Duration(at(caller+i)%4) * time.Millisecond)
				id, timeout := fmt.Sprintf("%d.%d", caller, i), ratelimit.RequestTimeout
				if at(caller+2*i)%16 == 9 {
					timeout = 10 * time.Millisecond
				}
				began := time.Now()
				got, err := p.Do(timeout, "ECHO", id)
				took := time.Since(began)
				var refused redis.Error
				mu.Lock()
				switch isRefusal := errors.As(err, &refused); {
				case err == nil && got != id, isRefusal && string(refused) != "ERR "+id:
					t.Errorf("call %s: got %q, %v, which is another's", id, got, err)
				case took > timeout:
					t.Errorf("call %s: waited %v, want at most %v", id, took, timeout)
				case err != nil && !isRefusal && broken.IsZero():
					broken = time.Now()
				case !broken.IsZero() && began.After(broken) && (took > 0 || err == nil || isRefusal):
					t.Errorf("call %s on a connection that was given up: got %q, %v after %v", id, got, err, took)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	f.atMostOnce(t)
}

// treat does with a command what a byte of a script says.
func (f *fakeRedis) treat(action int, id string) bool {
	switch action % 16 {
	case 8, 9:
		_, err := fmt.Fprintf(f.conn, "-ERR %s\r\n", id)
		return err == nil
	case 10, 11:
		time.Sleep(time.Duration(action/16*8) * time.Millisecond)
	case 12:
		fmt.Fprintf(f.conn, "$%d\r\n", len(id))
		time.Sleep(time.Millisecond)
		_, err := fmt.Fprintf(f.conn, "%s\r\n", id)
		return err == nil
	case 13:
		return false
	case 14:
		fmt.Fprintf(f.conn, "$%d\r\n%.1s", len(id), id)
		return false
	case 15:
		fmt.Fprint(f.conn, "what?\r\n")
		return true
	}
	return f.reply(id)
}
