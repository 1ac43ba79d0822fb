package e2e

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"animalstore"
	goclient "animalstore/client"
	"animalstore/internal/db/postgres/pgtest"
)

// contender is a server whose creates are measured. It is stopped while others have
// their turn, so that what it still has to deliver doesn't slow them down.
type contender struct {
	*server
	key        string
	took, used []float64 // seconds and seconds of processor time in each round
}

func newContender(t *testing.T, bin string, opts ...option) *contender {
	t.Helper()
	s := start(t, append(opts, withBinary(bin))...)
	args := []string{"keys", "create", "--database", databaseFlag(s.database), "--name", "load", "--permissions", "read,write,admin", "--plan", "enterprise", "--per-minute", "1000000000", "--per-day", "1000000000"}
	key, err := exec.Command(bin, args...).Output() // by the same version as the server's
	if err != nil {
		t.Fatal(err)
	}
	c := &contender{server: s, key: strings.TrimSpace(string(key))}
	send(t, s, c.key, "POST", "/v1/pets", newPetBody("Rex", 1, "available"), 1000, 201) // warm
	return c
}

func (c *contender) turn(t *testing.T, creates int64) {
	t.Helper()
	c.signal(syscall.SIGCONT)
	client := hookClient(t, c.url, c.key)
	eventually(t, time.Minute, "it serves again", func() bool { // what it had asked PostgreSQL has timed out
		_, err := client.CreatePet(t.Context(), animalstore.NewPet{Name: "Rex", CategoryID: 1})
		return err == nil
	})
	before, began := cpu(c.t, c.cmd.Process.Pid), time.Now()
	send(c.t, c.server, c.key, "POST", "/v1/pets", newPetBody("Rex", 1, "available"), creates, 201)
	c.took = append(c.took, time.Since(began).Seconds())
	c.used = append(c.used, (cpu(c.t, c.cmd.Process.Pid) - before).Seconds())
	c.signal(syscall.SIGSTOP)
}

// race lets contenders take turns, in another order each round, and returns the median
// of each round's ratio of the rate of the second to that of the first.
func race(t *testing.T, what string, first, second *contender) (rate float64) {
	t.Helper()
	const rounds, creates = 15, 4000
	first.signal(syscall.SIGSTOP)
	second.signal(syscall.SIGSTOP)
	for range rounds {
		order := []*contender{first, second}
		rand.Shuffle(2, func(i, j int) { order[i], order[j] = order[j], order[i] })
		for _, c := range order {
			c.turn(t, creates)
		}
	}
	var rates, costs []float64
	for i := range first.took {
		rates = append(rates, first.took[i]/second.took[i])
		costs = append(costs, second.used[i]/first.used[i])
	}
	slices.Sort(rates)
	slices.Sort(costs)
	first.signal(syscall.SIGCONT)
	second.signal(syscall.SIGCONT)
	t.Logf("%s: rate of creates %.3f (%.2f to %.2f), processor time of a create %.3f (%.2f to %.2f)", what,
		rates[rounds/2], rates[0], rates[rounds-1], costs[rounds/2], costs[0], costs[rounds-1])
	return rates[rounds/2]
}

// fastReceiver accepts everything at once.
func fastReceiver(t *testing.T) *httptest.Server {
	t.Helper()
	r := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }))
	t.Cleanup(r.Close)
	return r
}

// subscribeTo creates a webhook, and returns how old the oldest due delivery is.
func (c *contender) subscribeTo(t *testing.T, url string) (age func() float64) {
	t.Helper()
	if _, err := hookClient(t, c.url, c.key).CreateWebhook(t.Context(), animalstore.NewWebhook{URL: url, Types: "pet.*"}); err != nil {
		t.Fatal(err)
	}
	return func() float64 { return c.metric("animalstore_webhook_oldest_due_seconds") }
}

var toReceivers = withArgs("--webhook-networks", "127.0.0.0/8")

// TestWebhooksCostNothingUnused compares creates with those of a build from before there
// were webhooks, ANIMALSTORE_TEST_BASE.
func TestWebhooksCostNothingUnused(t *testing.T) {
	base := os.Getenv("ANIMALSTORE_TEST_BASE")
	if !soak || base == "" {
		t.Skip("measures: set ANIMALSTORE_SOAK=1 and ANIMALSTORE_TEST_BASE to a binary of commit 04de7b9")
	}
	if rate := race(t, "without webhooks, compared with before", newContender(t, base), newContender(t, binary)); rate < 0.98 {
		t.Errorf("creates are at %.3f of before, want 0.98", rate)
	}
}

// TestWebhooksBesideCreates: a webhook whose backlog grows takes a limited part of the
// rate of creates.
func TestWebhooksBesideCreates(t *testing.T) {
	if !soak {
		t.Skip("measures: set ANIMALSTORE_SOAK=1")
	}
	for _, engine := range []string{"sqlite", "postgres"} {
		t.Run(engine, func(t *testing.T) {
			onEngine := func() option {
				if engine == "sqlite" {
					return onDatabase(newDatabase(t))
				}
				return onDatabase(pgtest.Shared(t).NewDatabase(t, ""))
			}
			without, with := newContender(t, binary, onEngine()), newContender(t, binary, onEngine(), toReceivers, withOps())
			age := with.subscribeTo(t, fastReceiver(t).URL)
			if rate := race(t, "with a webhook, compared with none", without, with); rate < 0.7 {
				t.Errorf("creates are at %.3f of those without a webhook, want 0.7", rate)
			}
			t.Logf("%.0f were delivered meanwhile; the oldest delivery is due for %.1f s", with.metric(`animalstore_webhook_attempts_total{outcome="delivered"}`), age())
		})
	}
}

// TestWebhooksKeepPace: with creates at a tenth of the top rate, the backlog doesn't grow.
func TestWebhooksKeepPace(t *testing.T) {
	if !soak {
		t.Skip("measures: set ANIMALSTORE_SOAK=1")
	}
	c := newContender(t, binary, toReceivers, withOps())
	const creates = 8000
	began := time.Now()
	send(t, c.server, c.key, "POST", "/v1/pets", newPetBody("Rex", 1, "available"), creates, 201)
	top := creates / time.Since(began).Seconds()
	age := c.subscribeTo(t, fastReceiver(t).URL)
	const seconds = 60
	ages := make(chan []float64)
	go func() {
		var all []float64
		for range seconds {
			time.Sleep(time.Second)
			all = append(all, age())
		}
		ages <- all
	}()
	sendPaced(t, hookClient(t, c.url, c.key), top/10, seconds*time.Second)
	all := <-ages
	early, late := slices.Max(all[:seconds/2]), slices.Max(all[seconds/2:])
	t.Logf("top %.0f creates/s; at a tenth, the oldest due delivery was at most %.2f s old in the first half and %.2f s in the second", top, early, late)
	if late > early+1 {
		t.Errorf("the backlog grows: %v", all)
	}
	eventually(t, time.Minute, "all is delivered", func() bool { return age() == 0 })
}

// sendPaced creates pets at a rate.
func sendPaced(t *testing.T, c *goclient.Client, rate float64, during time.Duration) {
	t.Helper()
	began := time.Now()
	failed := make(chan error, 1)
	for n := 0; time.Since(began) < during; n++ {
		time.Sleep(time.Until(began.Add(time.Duration(float64(n) / rate * float64(time.Second)))))
		go func() {
			if _, err := c.CreatePet(t.Context(), animalstore.NewPet{Name: fmt.Sprint("Rex ", n), CategoryID: 1}); err != nil {
				select {
				case failed <- err:
				default:
				}
			}
		}()
	}
	select {
	case err := <-failed:
		t.Error(err)
	default:
	}
}
