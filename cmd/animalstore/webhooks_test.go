package main

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"animalstore/client/webhook"
	"animalstore/internal/testenv"
)

// received is one webhook as it arrived.
type received struct {
	path, body string
	header     http.Header
}

// TestWebhooksListen: a receiver gets from the command what it gets from the server,
// signed with the secret that the command prints, until Ctrl-C.
func TestWebhooksListen(t *testing.T) {
	t.Parallel()
	server := mustStart(t, t.TempDir(), "--webhook-networks", "127.0.0.0/8")
	arrived := make(chan received, 100)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		arrived <- received{r.URL.Path, string(body), r.Header}
		if r.URL.Path == "/listen" {
			w.WriteHeader(http.StatusTeapot)
		}
	}))
	defer receiver.Close()
	secret := server.mustRun(t, "webhooks", "create", "--to", receiver.URL+"/server", "--types", "pet.created")
	listen := startInBackground(t, server.command("webhooks", "listen", "--forward-to", receiver.URL+"/listen", "--types", "pet.created"))
	own := listen.waitFor(`(whsec_\S+)\nForwarding `)[1]
	server.mustRun(t, "pets", "create", "--name", "Mia <3 & \u2028", "--category", "7")
	listen.waitFor(`(?m)^\d+\t20\S+Z\tpet.created\tpet/1\t418\t\d+$`)
	compareReceived(t, arrived, map[string]string{"/server": secret, "/listen": own})
	if code := listen.interrupt(); code != 130 {
		t.Errorf("got exit code %d after Ctrl-C, want 130", code)
	}
}

// compareReceived waits for the webhooks of both senders, verifies them, and compares
// them.
func compareReceived(t *testing.T, arrived <-chan received, secrets map[string]string) {
	t.Helper()
	got := map[string]received{}
	for len(got) < len(secrets) {
		select {
		case r := <-arrived:
			got[r.path] = r
		case <-time.After(testenv.Deadline):
			t.Fatalf("got %v, want one of each sender", got)
		}
	}
	for path, r := range got {
		if err := webhook.Verify(secrets[path], r.header, []byte(r.body)); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
	a, b := got["/server"], got["/listen"]
	if a.body != b.body || !strings.Contains(a.body, `"name":"Mia `) {
		t.Errorf("the server sent %s\nlisten sent     %s", a.body, b.body)
	}
	for _, name := range []string{webhook.HeaderID, "Content-Type", "User-Agent"} {
		if a.header.Get(name) != b.header.Get(name) || a.header.Get(name) == "" {
			t.Errorf("%s: the server sent %q, listen %q", name, a.header.Get(name), b.header.Get(name))
		}
	}
}
