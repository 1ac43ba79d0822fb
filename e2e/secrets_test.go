package e2e

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"animalstore"
	goclient "animalstore/client"
	"animalstore/internal/testenv"
)

// TestSecretsStaySecret_Slow uses secrets in every way, with failures, and then looks for them
// in everything that a server writes and shows.
func TestSecretsStaySecret_Slow(t *testing.T) {
	t.Parallel()
	const owner, imported, redisPassword = "canary-owner-0wn3r0wn3r0wn3r", "canary-import-1mp0rt1mp0rt1mp0rt", "canary-redis-r3d1sr3d1sr3d1s"
	database := newDatabase(t)
	var fromFiles []string // as systemd's LoadCredential provides them
	for name, secret := range map[string]string{"OWNER_KEY": owner, "REDIS": "redis://user:" + redisPassword + "@127.0.0.1:1/0"} {
		file := filepath.Join(t.TempDir(), "credential")
		mustWrite(t, file, secret+"\n", 0o400)
		fromFiles = append(fromFiles, "ANIMALSTORE_"+name+"_FILE="+file)
	}
	gone := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusGone) }))
	defer gone.Close()
	s := start(t, trusting(t, gone), onDatabase(database), withOps(), withEnv(fromFiles...),
		withArgs("--access-log", "--webhook-networks", "127.0.0.0/8"))

	var said bytes.Buffer // by commands and in responses
	minted := newKey(t, database, "--name", "minted", "--plan", "free")
	for _, input := range []string{imported, imported, "x" + minted, minted[:40]} {
		cmd := exec.Command(binary, "keys", "import", "--name", "imported", "--database", "sqlite:"+database)
		cmd.Env, cmd.Stdin = cleanEnv(), strings.NewReader(input+"\n")
		p := startProcess(t, cmd)
		p.wait()
		said.WriteString(p.output())
	}
	rotated := strings.TrimSpace(command(t, database, "rotate", keyID(t, database, "imported"), "--grace", "1h").stdout)
	for _, args := range [][]string{{"list"}, {"list", "--json"}, {"show", keyID(t, database, "minted")}} {
		r := command(t, database, args...)
		said.WriteString(r.stdout + r.stderr)
	}
	keys := []string{owner, imported, minted, rotated}
	for _, secret := range keys {
		session(t, s, secret, &said)
	}
	hooks := failingWebhook(t, gone.URL, newGoClient(t, s.url, owner))
	admin := newClient(t, s, owner)
	for _, path := range []string{"/v1/events", "/v1/webhooks", "/v1/webhooks/1/deliveries", "/v1/keys", "/v1/status"} {
		a := admin.get(t, path)
		wantStatus(t, a, 200, "")
		fmt.Fprintln(&said, a.header, a.body)
	}

	process := fmt.Sprintf("/proc/%d/", s.cmd.Process.Pid)
	_, goroutines := s.ops("/debug/pprof/goroutine?debug=2")
	places := map[string]string{"metrics": s.metrics(), "profiles": goroutines, "responses and commands": said.String(),
		"arguments": string(mustRead(t, process+"cmdline")), "environment": string(mustRead(t, process+"environ"))}
	s.stop()
	places["log"], places["standard output"] = s.stderr.String(), s.stdout.String()
	if n := strings.Count(places["log"], "/v1/pets"); n < 10*len(keys) || !strings.Contains(places["log"], "webhook was disabled") {
		t.Fatalf("%d requests are in the log: there is nothing to look at", n)
	}
	if strings.Contains(places["log"], "Rex") {
		t.Error("the log contains part of a request's body")
	}
	for place, text := range places {
		wantNone(t, place, text, keys, hooks, []string{redisPassword})
	}
	files, err := filepath.Glob(database + "*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files { // they contain the secrets of webhooks, as SECURITY.md says
		wantNone(t, file, string(mustRead(t, file)), keys, []string{redisPassword})
	}
}

// TestCredentialsAreLoaded: the packaged service loads every credential that the guide and the
// settings mention.
func TestCredentialsAreLoaded(t *testing.T) {
	unit := string(mustRead(t, "../packaging/linux/animalstore.service"))
	for _, file := range []string{"../docs/operations.md", "../packaging/linux/animalstore.env"} {
		mentioned := regexp.MustCompile(`/run/credentials/animalstore\.service/([\w.-]+)`).FindAllStringSubmatch(string(mustRead(t, file)), -1)
		if len(mentioned) == 0 {
			t.Errorf("%s mentions no credential", file)
		}
		for _, m := range mentioned {
			if !strings.Contains(unit, "\nLoadCredential="+m[1]+":"+m[1]+"\n") {
				t.Errorf("%s: the service doesn't load %s", file, m[1])
			}
		}
	}
}

// failingWebhook creates a webhook that is disabled because of its receiver's response, and
// returns its secrets.
func failingWebhook(t *testing.T, url string, c *goclient.Client) []string {
	t.Helper()
	hook, err := c.CreateWebhook(t.Context(), animalstore.NewWebhook{URL: url, Types: "pet.*,key.*,webhook.*"})
	if err != nil {
		t.Fatal(err)
	}
	rotated, err := c.RotateWebhook(t.Context(), hook.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.PingWebhook(t.Context(), hook.ID); err != nil {
		t.Fatal(err)
	}
	testenv.Eventually(t, "the webhook is disabled", func() bool {
		w, err := c.GetWebhook(t.Context(), hook.ID)
		return err == nil && w.State == animalstore.WebhookDisabled
	})
	return []string{hook.Secret, rotated.Secret}
}

// wantNone fails the test if a text contains a secret, in any encoding.
func wantNone(t *testing.T, place, text string, secrets ...[]string) {
	t.Helper()
	lower := strings.ToLower(text)
	for _, group := range secrets {
		for _, secret := range group {
			forms := []string{secret, secret[9 : len(secret)-6]}
			for shift := range 3 { // base64 looks different by where in a text it starts
				part := []byte(secret[shift:])
				part = part[:len(part)/3*3]
				forms = append(forms, base64.StdEncoding.EncodeToString(part), base64.URLEncoding.EncodeToString(part))
			}
			for _, form := range forms {
				if at := strings.Index(text, form); at >= 0 {
					t.Errorf("%s: contains a secret as %s: %.200q", place, form, text[max(0, at-100):])
				}
			}
			if strings.Contains(lower, hex.EncodeToString([]byte(secret))) {
				t.Errorf("%s: contains the secret %s in hexadecimal", place, secret)
			}
		}
	}
}

// session sends every kind of request with a secret, right and wrong, and records the
// responses.
func session(t testing.TB, s *server, secret string, said io.Writer) {
	t.Helper()
	c := newClient(t, s, secret)
	keep := func(a response) { fmt.Fprintln(said, a.status, a.header, a.body) }
	for _, r := range [][3]string{
		{"GET", "/v1/pets", ""}, {"HEAD", "/v1/pets", ""}, {"GET", "/v1/pets/99", ""}, {"GET", "/v1/nothing", ""}, {"PUT", "/v1/pets", ""},
		{"POST", "/v1/pets", `{"name":"Rex","categoryId":1}`}, {"POST", "/v1/pets", `{"name":"Rex","categoryId":"` + secret + `"}`}, {"POST", "/v1/pets", secret},
		{"POST", "/v1/pets", `{"` + secret + `":1}`}, {"POST", "/v1/pets", `{"name":"Rex","categoryId":1,"status":"` + secret + `"}`},
		{"GET", "/v1/pets?limit=" + secret, ""}, {"GET", "/v1/pets?cursor=" + secret, ""}, {"GET", "/v1/pets?api_key=" + secret, ""},
		{"GET", "/v1/limits", ""}, {"POST", "/v1/keys", `{"name":"` + secret[:4] + `","plan":"` + secret + `"}`},
		{"POST", "/v1/webhooks", `{"url":"https://` + secret + `@example.com"}`},
	} {
		keep(c.do(t, r[0], r[1], r[2]))
	}
	for _, headers := range [][]string{
		{"Authorization", "Basic " + secret}, {"Authorization", secret}, {"Authorization", "Bearer " + secret + "x"}, {"Authorization", "Bearer " + secret + " x"},
		{"Cookie", "key=" + secret}, {"X-Request-Id", secret + "!"}, {"If-Match", `"` + secret + `"`}, {"If-None-Match", secret}, {"Content-Type", secret},
	} {
		keep(c.do(t, "GET", "/v1/pets", "", headers...))
	}
	conn := dial(t, s)
	conn.send(t, strings.TrimSuffix(message("GET", "/v1/pets", secret, ""), "\r\n")+"Authorization: Bearer "+secret+"\r\n\r\n")
	keep(conn.mustReceive(t))
}
