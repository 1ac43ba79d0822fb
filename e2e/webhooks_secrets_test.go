package e2e

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"net/http"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"animalstore"
	goclient "animalstore/client"
	"animalstore/internal/testenv"
)

// forms are the ways in which a secret could be encoded.
func forms(secret string) []string {
	random := strings.TrimPrefix(strings.TrimPrefix(secret, "whsec_"), "ast_live_")
	sum := sha256.Sum256([]byte(secret))
	all := []string{secret, random, random[4:20], hex.EncodeToString(sum[:]), base64.StdEncoding.EncodeToString(sum[:]), fmt.Sprint(sum[:])}
	if raw, err := base64.StdEncoding.DecodeString(random); err == nil && strings.HasPrefix(secret, "whsec_") {
		all = append(all, hex.EncodeToString(raw), fmt.Sprint(raw), string(raw))
	}
	return all
}

// TestWebhookSecretsStaySecret uses webhooks in every way, with failures, and then
// looks for the secrets of webhooks and keys in everything that a server writes and
// shows.
func TestWebhookSecretsStaySecret(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"text", "json"} {
		t.Run(format, func(t *testing.T) {
			t.Parallel()
			respond := make(chan int, 1)
			r := newHookReceiver(t, func(w http.ResponseWriter, _ *http.Request) {
				select {
				case status := <-respond:
					w.WriteHeader(status)
				default:
				}
			})
			respond <- http.StatusInternalServerError
			s := start(t, append(r.trusted(), withOps(), withArgs("--access-log", "--log-format", format))...)
			key := adminKey(t, s.database)
			c := hookClient(t, s.url, key)
			secrets := append(useWebhooks(t, s, c, key, r, respond), key, s.ownerKey())
			shown := everythingShown(t, s, c, key)
			s.stop()
			shown["log"] = s.stderr.String()
			for name, want := range map[string]string{"log": "a webhook was disabled", "/v1/events": "webhook.disabled", "metrics": `outcome="retry"`} {
				if !strings.Contains(shown[name], want) {
					t.Errorf("%s has no %q: the test proves nothing\n%s", name, want, shown[name])
				}
			}
			for name, text := range shown {
				for _, marker := range []string{"whsec_", "ast_live_"} {
					if at := strings.Index(text, marker); at >= 0 {
						t.Errorf("%s has %s: %.300s", name, marker, text[max(0, at-200):])
					}
				}
				for n, secret := range secrets {
					for _, form := range forms(secret) {
						if strings.Contains(text, form) {
							t.Errorf("%s has secret %d as %q", name, n, form)
						}
					}
				}
			}
		})
	}
}

// useWebhooks creates, pings, fails, repeats, rotates, changes, disables and removes
// webhooks, and returns the secrets created.
func useWebhooks(t *testing.T, s *server, c *goclient.Client, key string, r *hookReceiver, respond chan<- int) (secrets []string) {
	t.Helper()
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	hook := r.subscribe(c, "pet.*,order.*,category.*,key.*,webhook.*")
	otherKey, err := c.CreateKey(ctx, goclient.NewKey{Name: "other"})
	must(err)
	rotatedKey, err := c.RotateKey(ctx, otherKey.ID, time.Hour)
	must(err)
	_, err = c.PingWebhook(ctx, hook.ID)
	must(err)
	testenv.Eventually(t, "an attempt fails", func() bool { return len(deliveries(t, c, hook.ID, false)) > 0 })
	rotated, err := c.RotateWebhook(ctx, hook.ID, time.Hour)
	must(err)
	r.trust(rotated.Secret)
	for _, d := range deliveries(t, c, hook.ID, false) {
		_, err := c.RetryDelivery(ctx, hook.ID, d.ID)
		must(err)
	}
	secrets = append(secrets, regexp.MustCompile(`whsec_\S+`).FindString(commandOutput(t, s, key, "webhooks", "rotate", fmt.Sprint(hook.ID))))
	r.trust(secrets[0])
	// A webhook to an address where nothing listens, an untrusted one, and refused
	// requests that contain a secret.
	nowhere, err := c.CreateWebhook(ctx, animalstore.NewWebhook{URL: "https://127.0.0.1:1/", Types: "pet.*"})
	must(err)
	untrusted := newHookReceiver(t, func(http.ResponseWriter, *http.Request) {})
	other, err := c.CreateWebhook(ctx, animalstore.NewWebhook{URL: strings.Replace(untrusted.URL, "127.0.0.1", "localhost", 1), Types: "pet.*"})
	must(err)
	raw := newClient(t, s, otherKey.Secret)
	raw.do(t, "POST", "/v1/webhooks", `{"url":"https://`+hook.Secret+`@example.com","secret":"`+hook.Secret+`"}`)
	raw.do(t, "PATCH", fmt.Sprintf("/v1/webhooks/%d?secret=%s", hook.ID, hook.Secret), `{"secret":"`+hook.Secret+`"}`)
	_, err = c.CreatePet(ctx, animalstore.NewPet{Name: "Rex", CategoryID: 1})
	must(err)
	for _, id := range []int64{nowhere.ID, other.ID} {
		testenv.Eventually(t, "an attempt has no response", func() bool { return len(deliveries(t, c, id, false)) > 0 })
	}
	must(c.DeleteWebhook(ctx, nowhere.ID))
	respond <- http.StatusGone
	_, err = c.PingWebhook(ctx, hook.ID)
	must(err)
	testenv.Eventually(t, "the webhook is disabled", func() bool {
		w, err := c.GetWebhook(ctx, hook.ID)
		return err == nil && w.State == animalstore.WebhookDisabled
	})
	return append(secrets, hook.Secret, rotated.Secret, nowhere.Secret, other.Secret, otherKey.Secret, rotatedKey.Secret)
}

// deliveries returns the deliveries of a webhook whose last attempt succeeded or
// failed.
func deliveries(t *testing.T, c *goclient.Client, id int64, succeeded bool) (found []animalstore.Delivery) {
	t.Helper()
	for d, err := range c.ListDeliveries(t.Context(), id, goclient.DeliveryQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		if n := len(d.Attempts); n > 0 && d.Attempts[n-1].Succeeded() == succeeded {
			found = append(found, d)
		}
	}
	return found
}

// everythingShown returns everything that can be read from a server over the API, the
// command line and the operator's address, by source.
func everythingShown(t *testing.T, s *server, c *goclient.Client, key string) map[string]string {
	t.Helper()
	shown := map[string]string{"metrics": s.metrics()}
	raw := newClient(t, s, key)
	paths := []string{"/v1/events", "/v1/webhooks", "/v1/keys", "/v1/status"}
	for w, err := range c.ListWebhooks(t.Context(), goclient.PageQuery{}) {
		if err != nil {
			t.Fatal(err)
		}
		paths = append(paths, fmt.Sprint("/v1/webhooks/", w.ID), fmt.Sprintf("/v1/webhooks/%d/deliveries", w.ID))
		for _, command := range []string{"show", "deliveries"} {
			shown[fmt.Sprint("webhooks ", command, w.ID)] = commandOutput(t, s, key, "webhooks", command, fmt.Sprint(w.ID))
		}
	}
	for _, path := range paths {
		a := raw.get(t, path+"?limit=100")
		shown[path] = fmt.Sprint(a.header, a.body)
	}
	for _, args := range [][]string{{"webhooks", "list"}, {"events"}} {
		shown[strings.Join(args, " ")] = commandOutput(t, s, key, args...)
	}
	const profile = "/debug/pprof/goroutine?debug=2"
	_, shown[profile] = s.ops(profile)
	return shown
}

func commandOutput(t *testing.T, s *server, key string, args ...string) string {
	t.Helper()
	cmd := exec.Command(binary, append(args, "--url", s.url)...)
	cmd.Env = append(cleanEnv(), "ANIMALSTORE_API_KEY="+key)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", args, err, out)
	}
	return string(out)
}
