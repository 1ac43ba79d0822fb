package conformance

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/client/webhook"
)

// startGo runs the adapter for Go in this process.
func startGo(t testing.TB) *adapter {
	t.Helper()
	commands, in := io.Pipe()
	out, replies := io.Pipe()
	a := newAdapter("go", in)
	var running sync.WaitGroup
	running.Go(func() { a.read(out) })
	running.Go(func() {
		serveGo(commands, replies)
		replies.Close()
	})
	t.Cleanup(func() {
		in.Close()
		running.Wait()
	})
	return a
}

// goClient is a client that a command created, with the waits and attempts that weren't
// reported yet.
type goClient struct {
	*client.Client
	mu       sync.Mutex
	waits    []any
	attempts []any
}

func (c *goClient) onWait(w client.Wait) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waits = append(c.waits, map[string]any{
		"operation": w.Operation, "attempt": w.Attempt, "for": milliseconds(w.For), "reason": describe(w.Reason),
	})
}

func (c *goClient) onAttempt(a client.CallAttempt) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attempts = append(c.attempts, map[string]any{
		"operation": a.Operation, "method": a.Method, "path": a.Path, "number": a.Number,
		"status": a.Status, "requestId": a.RequestID, "duration": milliseconds(a.Duration),
	})
}

func (c *goClient) takeReports() (waits, attempts []any) {
	if c == nil {
		return nil, nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	waits, attempts = c.waits, c.attempts
	c.waits, c.attempts = nil, nil
	return waits, attempts
}

// serveGo carries out commands, all at the same time, until their end.
func serveGo(commands io.Reader, replies io.Writer) {
	var (
		clients sync.Map
		writing sync.Mutex
		running sync.WaitGroup
	)
	lines := bufio.NewScanner(commands)
	lines.Buffer(nil, 64<<20)
	for lines.Scan() {
		line := strings.Clone(lines.Text())
		running.Go(func() {
			reply, err := json.Marshal(runCommand(line, &clients))
			if err != nil {
				panic(err)
			}
			writing.Lock()
			defer writing.Unlock()
			_, _ = replies.Write(append(reply, '\n'))
		})
	}
	running.Wait()
}

// goCommand is a command in the types of the Go client.
type goCommand struct {
	ID      int64
	Client  string
	Call    string
	Args    json.RawMessage
	Options struct {
		IfMatch, IdempotencyKey    *string
		IfNoneMatch, Cursor        string
		OnePage                    bool
		Timeout, CancelAfter, Take int
	}
}

func runCommand(line string, clients *sync.Map) map[string]any {
	var cmd goCommand
	if err := json.Unmarshal([]byte(line), &cmd); err != nil {
		return map[string]any{"error": map[string]any{"kind": "adapter", "text": err.Error()}}
	}
	var (
		c    *goClient
		meta client.Meta
	)
	if found, ok := clients.Load(cmd.Client); ok {
		c = found.(*goClient)
	}
	result, err := func() (any, error) {
		switch cmd.Call {
		case "new":
			created, err := newGoClient(cmd.Args)
			if err == nil {
				clients.Store(cmd.Client, created)
			}
			return nil, err
		case "close":
			c.CloseIdleConnections()
			clients.Delete(cmd.Client)
			return nil, nil
		case "rateLimit":
			limit, ok := c.RateLimit()
			if !ok {
				return nil, nil
			}
			return describeLimit(limit), nil
		case "verifyWebhook":
			return verifyWebhook(cmd.Args)
		}
		return callOperation(c.Client, cmd, &meta)
	}()
	waits, attempts := c.takeReports()
	reply := map[string]any{"id": cmd.ID, "result": result, "waits": waits, "attempts": attempts, "meta": map[string]any{
		"status": meta.Status, "etag": meta.ETag, "requestId": meta.RequestID, "replayed": meta.Replayed,
		"banLifted": meta.BanLifted, "attempts": meta.Attempts, "nextCursor": meta.NextCursor, "rateLimit": describeLimit(meta.RateLimit), "age": meta.Age.Seconds(),
	}}
	if err != nil {
		reply["error"] = describe(err)
	}
	return reply
}

func newGoClient(args json.RawMessage) (*goClient, error) {
	var a struct {
		BaseURL, APIKey         string
		UserAgent               *string
		MaxAttempts             *int
		BackoffBase, BackoffMax int
		MaxWait, AttemptTimeout *int
		Pacing                  bool
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	c := &goClient{}
	options := []client.Option{
		client.WithHTTPClient(&http.Client{Transport: &http.Transport{}}), // no proxy
		client.WithOnWait(c.onWait),
		client.WithOnAttempt(c.onAttempt),
		client.WithBackoff(duration(a.BackoffBase), duration(a.BackoffMax)),
	}
	if a.UserAgent != nil {
		options = append(options, client.WithUserAgent(*a.UserAgent))
	}
	if a.MaxAttempts != nil {
		options = append(options, client.WithMaxAttempts(*a.MaxAttempts))
	}
	if a.MaxWait != nil {
		options = append(options, client.WithMaxWait(duration(*a.MaxWait)))
	}
	if a.AttemptTimeout != nil {
		options = append(options, client.WithAttemptTimeout(duration(*a.AttemptTimeout)))
	}
	if a.Pacing {
		options = append(options, client.WithPacing())
	}
	var err error
	c.Client, err = client.New(a.BaseURL, a.APIKey, options...)
	return c, err
}

// callOperation calls one method of the client with the options of a command.
func callOperation(c *client.Client, cmd goCommand, meta *client.Meta) (any, error) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if cmd.Options.Timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, duration(cmd.Options.Timeout))
		defer cancel()
	}
	if cmd.Options.CancelAfter > 0 {
		timer := time.AfterFunc(duration(cmd.Options.CancelAfter), cancel)
		defer timer.Stop()
	}
	options := []client.CallOption{client.ReadMeta(meta), client.IfNoneMatch(cmd.Options.IfNoneMatch), client.FromCursor(cmd.Options.Cursor)}
	if cmd.Options.IfMatch != nil {
		options = append(options, client.IfMatch(*cmd.Options.IfMatch))
	}
	if cmd.Options.IdempotencyKey != nil {
		options = append(options, client.IdempotencyKey(*cmd.Options.IdempotencyKey))
	}
	if cmd.Options.OnePage {
		options = append(options, client.OnePage())
	}
	var a goArgs
	if err := json.Unmarshal(cmd.Args, &a); err != nil {
		return nil, err
	}
	a.take = cmd.Options.Take
	if a.Query.PageSize != 0 {
		options = append(options, client.PageSize(a.Query.PageSize))
	}
	return a.call(ctx, c, cmd.Call, options)
}

// take collects the entries of a list, at most n unless n is 0.
func take[T any](n int, list iter.Seq2[T, error]) ([]T, error) {
	all := []T{}
	for entry, err := range list {
		if err != nil {
			return all, err
		}
		if all = append(all, entry); len(all) == n {
			break
		}
	}
	return all, nil
}

// verifyWebhook returns the content of a genuine webhook, which in Go the caller reads.
func verifyWebhook(args json.RawMessage) (any, error) {
	var a struct {
		Secrets []string
		Headers map[string]string
		Body    string
		Now     int64
	}
	if err := json.Unmarshal(args, &a); err != nil {
		return nil, err
	}
	headers := http.Header{}
	for name, value := range a.Headers {
		headers.Set(name, value)
	}
	v := webhook.Verifier{Secrets: a.Secrets, Now: func() time.Time { return time.Unix(a.Now, 0) }}
	if err := v.Verify(headers, []byte(a.Body)); err != nil {
		return nil, err
	}
	return json.RawMessage(a.Body), nil
}

// webhookReasons are the names of the reasons why a webhook isn't genuine.
var webhookReasons = map[error]string{
	webhook.ErrNoSecret: "no_secret", webhook.ErrInvalidSecret: "invalid_secret",
	webhook.ErrMissingHeader: "missing_header", webhook.ErrInvalidHeader: "invalid_header",
	webhook.ErrTooOld: "too_old", webhook.ErrTooNew: "too_new", webhook.ErrNoMatch: "no_match",
}

// describe returns an error in the form of the protocol.
func describe(err error) map[string]any {
	d := map[string]any{"text": err.Error(), "outcomeUnknown": errors.Is(err, client.ErrOutcomeUnknown)}
	var (
		coded    *animalstore.Error
		service  *client.Error
		limit    *client.RateLimitError
		response *client.ResponseError
	)
	if errors.As(err, &coded) {
		d["code"], d["message"] = string(coded.Code), coded.Message
	}
	if errors.As(err, &service) {
		d["status"], d["requestId"], d["operation"], d["request"] = service.Status, service.RequestID, service.Operation, service.Request
	}
	if errors.As(err, &response) {
		d["status"], d["operation"], d["request"] = response.Status, response.Operation, response.Request
	}
	if errors.As(err, &limit) {
		d["window"], d["limit"], d["reset"], d["retryAfter"] = string(limit.Window), limit.Limit, limit.Reset.Unix(), milliseconds(limit.RetryAfter)
	}
	for reason, name := range webhookReasons {
		if errors.Is(err, reason) {
			d["reason"] = name
		}
	}
	d["kind"] = kindOf(err, limit != nil, coded != nil, response != nil, d["reason"] != nil)
	return d
}

func kindOf(err error, limit, service, response, webhook bool) string {
	var network net.Error
	switch {
	case errors.Is(err, client.ErrNotModified):
		return "notModified"
	case errors.Is(err, context.Canceled):
		return "aborted"
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case limit:
		return "rateLimit"
	case service:
		return "service"
	case response:
		return "response"
	case webhook:
		return "webhook"
	case errors.As(err, &network), errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), strings.Contains(err.Error(), "no response in time"):
		return "network"
	}
	return "invalid"
}

func describeLimit(l client.RateLimit) any {
	if l == (client.RateLimit{}) {
		return nil
	}
	return map[string]any{"limit": l.Limit, "remaining": l.Remaining, "reset": l.Reset.Unix()}
}

func duration(ms int) time.Duration { return time.Duration(ms) * time.Millisecond }

func milliseconds(d time.Duration) float64 { return cmp.Or(float64(d.Microseconds())/1000, 0) }
