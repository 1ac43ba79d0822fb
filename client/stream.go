package client

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"animalstore"
)

// follower follows events by a stream of server-sent events, or by long polls while a
// stream can't be used.
type follower struct {
	client  *Client
	options []CallOption
	query   url.Values // selects the events
	yield   func(animalstore.Event) bool

	position  string        // the id to continue after; "" if that is in the query
	left      bool          // the caller left the loop
	retry     time.Duration // the pause between streams that the service asks for
	breaks    int           // streams in a row that ended before an event or a comment
	pollUntil time.Time
}

const (
	// commentInterval is how long the service lets a stream be silent.
	commentInterval = 15 * time.Second
	// pollWait is how many seconds the service waits for an event: the maximum it allows.
	pollWait = 30
	// pollPeriod is how long a follower polls before it tries a stream again.
	pollPeriod = 10 * time.Minute
)

var (
	// errNoStream means that a stream can't be used, but long polls can.
	errNoStream    = errors.New("no stream")
	errStreamEnded = errors.New("the stream ended")
)

// run follows events until the caller leaves the loop, or until an error that a retry
// can't fix.
func (f *follower) run(ctx context.Context) error {
	var err error
	for err == nil && !f.left {
		if time.Now().Before(f.pollUntil) {
			err = f.poll(ctx)
		} else {
			err = f.stream(ctx)
		}
	}
	return err
}

// poll requests the next events once.
func (f *follower) poll(ctx context.Context) error {
	query := maps.Clone(f.query)
	query.Set("limit", strconv.Itoa(maxPageSize))
	query.Set("wait", strconv.Itoa(pollWait))
	if f.position != "" {
		query.Set("after", f.position)
		query.Del("since")
	}
	op := operation{name: "events", method: http.MethodGet, path: "/events?" + query.Encode(), endless: true, wait: pollWait * time.Second}
	page, k, err := receiveCall(ctx, f.client, op, f.options, areEvents)
	if err != nil {
		return err
	}
	for _, e := range page {
		if !f.yield(e) {
			f.left = true
			return nil
		}
	}
	next, err := nextEvents(k)
	f.position = strconv.FormatInt(next, 10)
	return err
}

// stream opens a stream and reads it until it ends.
func (f *follower) stream(ctx context.Context) error {
	op := operation{name: "events", method: http.MethodGet, path: "/events", endless: true, stream: f}
	if len(f.query) > 0 {
		op.path += "?" + f.query.Encode()
	}
	k, err := f.client.do(ctx, op, f.options, nil)
	if err == errNoStream {
		f.pollUntil = time.Now().Add(pollPeriod)
		return nil
	}
	if err != nil || f.left {
		return err
	}
	f.breaks++
	ended := &failure{
		err:       k.wrap(errStreamEnded),
		retryable: true,
		after:     f.retry,
	}
	return f.client.pause(ctx, k, ended, f.breaks, time.Time{})
}

func (f *follower) setHeaders(h http.Header) {
	h.Set("Accept", "text/event-stream")
	if f.position != "" {
		h.Set("Last-Event-ID", f.position)
	}
}

// read reads a stream. timer ends the context if the service is silent for too long. It
// returns nil if the stream ended in any other way, so that another can be opened.
func (f *follower) read(ctx context.Context, k *call, body io.Reader, timer *time.Timer) *failure {
	timeout := f.client.attemptTimeout
	err := f.readEvents(&watched{body, timer, timeout, timeout + commentInterval})
	if f.left || ctx.Err() == nil {
		return nil
	}
	return f.client.noResponse(ctx, k, err, false)
}

func (f *follower) readEvents(body io.Reader) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxResponse)
	var id, data string
	for lines.Scan() {
		line := lines.Text()
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch {
		case line == "":
			if err := f.dispatch(data); err != nil || f.left {
				return err
			}
			if id != "" {
				f.position = id
			}
			id, data = "", ""
		case field == "": // a comment
			f.breaks = 0
		case field == "id":
			id = value
		case field == "data":
			data += value + "\n"
		case field == "retry":
			if ms, err := strconv.ParseUint(value, 10, 31); err == nil {
				f.retry = time.Duration(ms) * time.Millisecond
			}
		}
	}
	return lines.Err()
}

// dispatch hands over the event at the end of a block. A block without data only tells
// the position.
func (f *follower) dispatch(data string) error {
	if data == "" {
		return nil
	}
	var e animalstore.Event
	if err := json.Unmarshal([]byte(data), &e); err != nil {
		return err
	}
	if !isEvent(&e) {
		return errors.New("the event lacks required fields")
	}
	f.breaks = 0
	f.left = !f.yield(e)
	return nil
}

// watched is a body that stops a timer whenever something arrives, and starts it again
// when the reader wants more: a slow reader is not a silent service.
type watched struct {
	body  io.Reader
	timer *time.Timer
	limit time.Duration // for the next read
	later time.Duration // for those after the first
}

func (w *watched) Read(p []byte) (int, error) {
	w.timer.Reset(w.limit)
	defer w.timer.Stop()
	w.limit = w.later
	return w.body.Read(p)
}
