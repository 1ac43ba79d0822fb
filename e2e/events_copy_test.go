package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"animalstore"
	goclient "animalstore/client"
)

// storeCopy is a copy of a store, maintained only by following its events.
type storeCopy struct {
	name string

	mu    sync.Mutex
	shown []shownEvent      // the event with id n is at n-1
	items map[string]string // by subject
	wrong []string
}

func newCopy(name string) *storeCopy { return &storeCopy{name: name, items: map[string]string{}} }

// apply applies an event to the copy. Clients can't rely on consecutive ids, but here
// they show that no event was skipped, repeated or out of order.
func (c *storeCopy) apply(e animalstore.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if last := int64(len(c.shown)); e.ID != last+1 {
		c.wrong = append(c.wrong, fmt.Sprintf("event %d after %d", e.ID, last))
		return
	}
	c.shown = append(c.shown, shownAs(e))
	subject, data := c.shown[e.ID-1].item() // interned, unlike those of e
	if strings.HasSuffix(string(e.Type), ".deleted") {
		delete(c.items, subject)
	} else {
		c.items[subject] = data
	}
}

// fail records why the follower can't go on.
func (c *storeCopy) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.wrong = append(c.wrong, fmt.Sprintf("after event %d: %v", len(c.shown), err))
}

// soFar returns what the follower was shown, and what was wrong with it.
func (c *storeCopy) soFar() (shown []shownEvent, wrong []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.shown, c.wrong
}

// followers keep copies, each in its own way, until they are stopped.
type followers struct {
	copies []*storeCopy
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

// follow starts n followers of several instances. A third of them use the Go client with one
// instance, and wait for it if it is down. Others read a stream and resume it at another
// instance when it ends, or request one page after the other from one instance.
func follow(t *testing.T, n int, urls []string, key string) *followers {
	ctx, cancel := context.WithCancel(context.Background())
	f := &followers{cancel: cancel}
	t.Cleanup(f.stop)
	for i := range n {
		c := newCopy(fmt.Sprintf("follower %d", i))
		f.copies = append(f.copies, c)
		at := i / 3 % len(urls)
		switch i % 3 {
		case 0:
			client := newGoClient(t, urls[at], key, goclient.WithAttemptTimeout(5*time.Second))
			f.wg.Go(func() { useClient(ctx, c, client) })
		case 1:
			f.wg.Go(func() { readStreams(ctx, c, urls, at, key) })
		case 2:
			f.wg.Go(func() {
				readPages(ctx, c, &client{url: urls[at], key: key, http: &http.Client{Timeout: 5 * time.Second}})
			})
		}
	}
	return f
}

func (f *followers) stop() {
	f.cancel()
	f.wg.Wait()
}

func useClient(ctx context.Context, copied *storeCopy, c *goclient.Client) {
	for e, err := range c.Events(ctx, animalstore.EventQuery{}) {
		if err != nil {
			if ctx.Err() == nil {
				copied.fail(err)
			}
			return
		}
		copied.apply(e)
	}
}

// errExpired: the server doesn't have the event that a stream was to be resumed after.
var errExpired = errors.New("status 410")

// readStreams follows a stream, and resumes it at the next instance when it ends.
func readStreams(ctx context.Context, copied *storeCopy, urls []string, at int, key string) {
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	lastID := "0"
	for ; ctx.Err() == nil; at++ {
		err := readStream(ctx, transport, urls[at%len(urls)], key, &lastID, copied.apply)
		if errors.Is(err, errExpired) {
			copied.fail(errExpired)
			return
		}
		time.Sleep(pause)
	}
}

// readPages requests the events after the last one, again and again.
func readPages(ctx context.Context, copied *storeCopy, c *client) {
	for last := int64(0); ctx.Err() == nil; time.Sleep(pause) {
		a, err := c.try("GET", fmt.Sprint("/v1/events?limit=100&after=", last), "")
		if err == nil && a.status == http.StatusGone {
			copied.fail(errExpired)
			return
		}
		if err != nil || a.status != http.StatusOK {
			continue
		}
		var events []animalstore.Event
		if err := json.Unmarshal([]byte(a.body), &events); err != nil {
			copied.fail(err)
			return
		}
		for _, e := range events {
			copied.apply(e)
			last = e.ID
		}
	}
}

// readStream reads one stream to its end, starting after lastID. It returns nil if the
// server ended it.
func readStream(ctx context.Context, transport http.RoundTripper, url, key string, lastID *string, apply func(animalstore.Event)) error {
	req, err := http.NewRequestWithContext(ctx, "GET", url+"/v1/events", nil)
	if err != nil {
		return err
	}
	req.Header = http.Header{"Authorization": {"Bearer " + key}, "Accept": {"text/event-stream"}, "Last-Event-Id": {*lastID}}
	res, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusGone {
		return errExpired
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", res.StatusCode)
	}
	id, data := "", ""
	lines := bufio.NewReader(res.Body)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			if err.Error() == "EOF" {
				return nil
			}
			return err
		}
		name, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch {
		case name == "id":
			id = value
		case name == "data":
			data = value
		case line == "\n":
			if data != "" {
				var e animalstore.Event
				if err := json.Unmarshal([]byte(data), &e); err != nil {
					return err
				}
				apply(e)
			}
			if id != "" {
				*lastID = id
			}
			data = ""
		}
	}
}

// storeContents reads everything in a store, as its lists show it.
func storeContents(t testing.TB, c *client) map[string]string {
	t.Helper()
	all := map[string]string{}
	for resource, path := range map[string]string{"pet": "/v1/pets", "order": "/v1/store/orders", "category": "/v1/categories", "key": "/v1/keys"} {
		for item := range list[json.RawMessage](t, c, path) {
			var id struct{ ID int64 }
			if err := json.Unmarshal(item, &id); err != nil {
				t.Fatal(err)
			}
			all[animalstore.EventSubject(resource, id.ID)] = string(item)
		}
	}
	return all
}

// comparable returns an item without the fields that change without an event.
func comparable(subject, item string) string {
	if !strings.HasPrefix(subject, "key/") {
		return item
	}
	var key map[string]any
	if err := json.Unmarshal([]byte(item), &key); err != nil {
		return err.Error()
	}
	delete(key, "lastUsedAt")
	b, err := json.Marshal(key)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// compare compares all copies with the store, in which nothing may change any more.
func (f *followers) compare(t *testing.T, c *client) {
	t.Helper()
	want := storeContents(t, c)
	for _, copied := range f.copies {
		differences := 0
		for subject, item := range want {
			if got := comparable(subject, copied.items[subject]); got != comparable(subject, item) {
				if differences++; differences <= 3 {
					t.Errorf("%s: %s is %s, in the store %s", copied.name, subject, got, item)
				}
			}
		}
		for subject := range copied.items {
			if _, ok := want[subject]; !ok {
				t.Errorf("%s has %s, which isn't in the store", copied.name, subject)
			}
		}
	}
}
