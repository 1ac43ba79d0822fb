package e2e

import (
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestStopLosesNoRequest stops servers under load, again and again. A client may
// be refused a connection, but a request that was sent gets a complete response:
// when a listening socket closes, Linux resets the connections that still wait to
// be accepted, so there must be none.
func TestStopLosesNoRequest(t *testing.T) {
	onlyForRelease(t, "a load that takes long")
	t.Parallel()
	stops := 3
	if soak {
		stops = 50
	}
	var answered, late, refused, lost int64
	var longest time.Duration
	for range stops {
		load := stopUnderLoad(t)
		answered += load.answered.Load()
		late += load.late.Load()
		refused += load.refused.Load()
		lost += load.lost.Load()
		longest = max(longest, load.took)
	}
	t.Logf("%d stops, the longest took %v: %d requests answered, %d of them after the signal, %d connections refused, %d requests lost",
		stops, longest.Round(time.Millisecond), answered, late, refused, lost)
	if lost > 0 {
		t.Errorf("%d requests were sent and lost, want 0", lost)
	}
	if late == 0 {
		t.Error("nothing was answered after the signal: the load is too light")
	}
}

// stopLoad is a server with clients that send requests until they are refused.
type stopLoad struct {
	*server
	key     string
	stopped atomic.Bool // the signal was sent
	took    time.Duration

	answered, late, refused, lost atomic.Int64
}

// stopUnderLoad starts a server and stops it while 16 clients send requests. Half
// of them open a connection for each request.
func stopUnderLoad(t *testing.T) *stopLoad {
	t.Helper()
	const clients = 16
	load := &stopLoad{server: start(t)}
	load.key = loadKey(t, load.database)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			if err := load.send(i%2 == 0); err != nil {
				load.lost.Add(1)
				t.Logf("client %d: %v", i, err)
			}
		})
	}
	eventually(t, time.Minute, "the load is on", func() bool { return load.answered.Load() > 20*clients })
	load.stopped.Store(true)
	begun := time.Now()
	load.signal(syscall.SIGTERM)
	if code := load.wait(); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	load.took = time.Since(begun)
	wg.Wait()
	return load
}

// longPause is how long a client must have been held up between two requests for its
// connection to count as idle. The server closes those after half a second.
const longPause = 400 * time.Millisecond

// send sends requests until a connection is refused, or until a request is lost,
// which is its error.
func (load *stopLoad) send(keepAlive bool) error {
	m := message("GET", "/v1/pets?status=sold", load.key, "")
	for {
		c, err := tryDial(load.server)
		if err != nil {
			load.refused.Add(1)
			if !errors.Is(err, syscall.ECONNREFUSED) && !wasReset(err) {
				return fmt.Errorf("not refused: %w", err)
			}
			return nil
		}
		received := time.Now()
		for closes := false; !closes; {
			var a response
			_, err = io.WriteString(c, m)
			paused := time.Since(received)
			if err == nil {
				a, closes, err = c.receive()
			}
			if err != nil && c.answered > 0 && paused > longPause {
				c.Close()
				return nil
			}
			if err != nil || a.status != 200 {
				c.Close()
				return fmt.Errorf("after %d responses on this connection: %d %s, %w", c.answered, a.status, a.body, err)
			}
			received = time.Now()
			load.answered.Add(1)
			if load.stopped.Load() {
				load.late.Add(1)
			}
			closes = closes || !keepAlive
		}
		c.Close()
	}
}
