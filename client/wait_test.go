package client_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/client/clienttest"
)

// scripted sends one response after the other, and repeats the last one.
type scripted struct {
	responses []func(*http.Request) (*http.Response, error)
	sent      []*http.Request
}

func (s *scripted) RoundTrip(r *http.Request) (*http.Response, error) {
	s.sent = append(s.sent, r)
	return s.responses[min(len(s.sent), len(s.responses))-1](r)
}

// scriptedClient is a client of a scripted service.
func scriptedClient(t testing.TB, script []func(*http.Request) (*http.Response, error), options ...client.Option) (*client.Client, *scripted) {
	t.Helper()
	s := &scripted{responses: script}
	options = append([]client.Option{client.WithHTTPClient(&http.Client{Transport: s})}, options...)
	c, err := client.New("http://store.test", "ast_live_secret", options...)
	if err != nil {
		t.Fatal(err)
	}
	return c, s
}

type reply = func(*http.Request) (*http.Response, error)

// response is a reply with a JSON body. Headers alternate names and values.
func response(status int, body string, headers ...string) reply {
	return func(r *http.Request) (*http.Response, error) {
		h := http.Header{"Content-Type": {"application/json"}}
		for pair := range slices.Chunk(headers, 2) {
			h.Set(pair[0], pair[1])
		}
		return &http.Response{StatusCode: status, Header: h, Body: readCloser(body), Request: r}, nil
	}
}

func apiError(status int, code animalstore.Code, headers ...string) reply {
	return response(status, `{"code":"`+string(code)+`","message":"as it is","status":0}`, headers...)
}

const petJSON = `{"id":1,"name":"Rex","categoryId":7,"status":"available"}`

// TestLiftedBan: a client checks from time to time whether its ban was lifted, and
// continues.
func TestLiftedBan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var responses tally
		store := clienttest.New(t, clienttest.InMemory(), clienttest.WithMiddleware(responses.middleware))
		secret := store.NewKey(animalstore.PlanEnterprise, animalstore.Limits{PerMinute: 2, PerDay: 1000}, animalstore.Read)
		reckless := func() { // unlike our client
			c := store.NewClient(secret, client.WithMaxAttempts(1), client.WithMaxWait(0))
			if _, err := c.GetLimits(t.Context()); err == nil {
				t.Error("got success, want a refusal")
			}
		}
		c := store.NewClient(secret, client.WithMaxWait(10*time.Second))
		for range 2 {
			if _, err := c.GetLimits(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		reckless()
		time.Sleep(2 * time.Second)
		for range 100 {
			reckless()
		}
		time.Sleep(time.Minute) // the window that this client knows about is over
		_, err := c.GetLimits(t.Context())
		wantCode(t, err, animalstore.KeyBanned)
		if _, err := store.Client.UnbanKey(t.Context(), 2); err != nil {
			t.Fatal(err)
		}
		before := responses.total()
		for range 10 { // the client knows about the ban and sends nothing
			_, err = c.GetLimits(t.Context())
			wantCode(t, err, animalstore.KeyBanned)
			time.Sleep(10 * time.Second)
		}
		if got := responses.total() - before; got != 0 {
			t.Errorf("sent %d requests during a ban, want none", got)
		}
		time.Sleep(20 * time.Second)
		for range 2 {
			if _, err := c.GetLimits(t.Context()); err != nil {
				t.Errorf("got %v two minutes after the last request, want success: the ban was lifted", err)
			}
		}
	})
}

// TestNeverPastTheMemory: an Idempotency-Key is stored for a day, so a call isn't
// retried later than that.
func TestNeverPastTheMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cut := func(*http.Request) (*http.Response, error) { return nil, errors.New("cut") }
		tomorrow := apiError(429, animalstore.DailyQuotaExceeded, "Retry-After", "86000")
		created := response(201, petJSON)
		c, s := scriptedClient(t, []reply{cut, tomorrow, created})
		_, err := c.CreatePet(t.Context(), animalstore.NewPet{Name: "Rex"})
		if !errors.Is(err, client.ErrOutcomeUnknown) || len(s.sent) != 2 {
			t.Errorf("got %v after %d requests, want ErrOutcomeUnknown after 2", err, len(s.sent))
		}
		// The same applies if another call was told to wait.
		cutDuringAnother := func(r *http.Request) (*http.Response, error) {
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				_, err := c.GetLimits(ctx)
				wantCode(t, err, animalstore.DailyQuotaExceeded)
			}()
			synctest.Wait()
			return cut(r)
		}
		c, s = scriptedClient(t, []reply{cutDuringAnother, tomorrow, created})
		_, err = c.CreatePet(t.Context(), animalstore.NewPet{Name: "Rex"})
		wantCode(t, err, animalstore.DailyQuotaExceeded)
		if !errors.Is(err, client.ErrOutcomeUnknown) || len(s.sent) != 2 {
			t.Errorf("got %v after %d requests, want ErrOutcomeUnknown after 2", err, len(s.sent))
		}
		// If no earlier attempt can have been carried out, there is no time limit.
		c, s = scriptedClient(t, []reply{tomorrow, created})
		if _, err := c.CreatePet(t.Context(), animalstore.NewPet{Name: "Rex"}); err != nil || len(s.sent) != 2 {
			t.Errorf("got %v after %d requests, want success after 2", err, len(s.sent))
		}
	})
}

// TestTimeoutOfHTTPClient: an attempt ends at the Timeout of the program's http.Client, or at its
// own if that is shorter.
func TestTimeoutOfHTTPClient(t *testing.T) {
	silent := reply(func(r *http.Request) (*http.Response, error) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	})
	for attempt, want := range map[time.Duration]time.Duration{30 * time.Second: 5 * time.Second, time.Second: time.Second} {
		synctest.Test(t, func(t *testing.T) {
			hc := &http.Client{Transport: &scripted{responses: []reply{silent}}, Timeout: 5 * time.Second}
			c, _ := scriptedClient(t, nil, client.WithHTTPClient(hc), client.WithAttemptTimeout(attempt), client.WithMaxAttempts(1))
			began := time.Now()
			if _, err := c.GetLimits(t.Context()); err == nil || time.Since(began) != want {
				t.Errorf("got %v after %v, want an error after %v", err, time.Since(began), want)
			}
		})
	}
}
