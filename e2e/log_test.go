package e2e

import (
	"bufio"
	"encoding/json"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestPublicPages(t *testing.T) {
	t.Parallel()
	s := start(t)
	c := newClient(t, s, "")
	for path, want := range map[string]struct{ contentType, start string }{
		"/livez":        {"application/json", `{"status":"alive"}`},
		"/readyz":       {"application/json", `{"status":"ready"}`},
		"/openapi.yaml": {"application/yaml", "openapi: 3.1"},
		"/openapi.json": {"application/json", "{"},
	} {
		a := c.get(t, path)
		if a.status != 200 || !strings.HasPrefix(a.body, want.start) || a.header.Get("Content-Type") != want.contentType || a.header.Get("X-Request-Id") == "" {
			t.Errorf("GET %s = %d %.60q with headers %v", path, a.status, a.body, a.header)
		}
		if head := c.do(t, "HEAD", path, ""); head.status != 200 || head.body != "" {
			t.Errorf("HEAD %s = %d %q", path, head.status, head.body)
		}
	}
	var document struct{ OpenAPI string }
	if err := json.Unmarshal([]byte(c.get(t, "/openapi.json").body), &document); err != nil || !strings.HasPrefix(document.OpenAPI, "3.1") {
		t.Errorf("/openapi.json: %v, %+v", err, document)
	}
	wantStatus(t, c.get(t, "/v1/pets"), 401, "missing_api_key")
}

func TestRequestIDs(t *testing.T) {
	t.Parallel()
	s := start(t, withArgs("--access-log"))
	c := newClient(t, s, s.ownerKey())
	if a := c.do(t, "GET", "/v1/pets", "", "X-Request-Id", "mine-4711"); a.header.Get("X-Request-Id") != "mine-4711" {
		t.Errorf("a client's own request id comes back as %q", a.header.Get("X-Request-Id"))
	}
	ids := []string{"mine-4711"}
	for _, path := range []string{"/v1/pets", "/v1/nowhere", "/livez", "/v1/pets/99"} {
		a := c.get(t, path)
		id := a.header.Get("X-Request-Id")
		if id == "" || strings.Contains(strings.Join(ids, " "), id) {
			t.Errorf("GET %s has request id %q after %q", path, id, ids)
		}
		ids = append(ids, id)
	}
	for _, id := range ids {
		line := regexp.MustCompile(`msg=request request_id=` + regexp.QuoteMeta(id) + ` client=127\.0\.0\.1 method=GET path=\S+ status=\d+ `)
		eventually(t, time.Minute, "request "+id+" is in the access log", func() bool { return line.MatchString(s.stderr.String()) })
	}

	quiet := start(t)
	newClient(t, quiet, quiet.ownerKey()).get(t, "/v1/pets")
	quiet.stop()
	if strings.Contains(quiet.stderr.String(), "msg=request") {
		t.Errorf("requests are logged without --access-log:\n%s", quiet.stderr)
	}
}

func TestJSONLog(t *testing.T) {
	t.Parallel()
	s := start(t, withArgs("--access-log", "--log-format", "json"))
	newClient(t, s, "").get(t, "/v1/pets")
	s.stop()
	seen := map[string]bool{}
	for lines := bufio.NewScanner(strings.NewReader(s.stderr.String())); lines.Scan(); {
		var line struct {
			Time  time.Time
			Level string
			Msg   string
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil || line.Time.IsZero() || line.Level == "" || line.Msg == "" {
			t.Errorf("the line %s: %v", lines.Text(), err)
		}
		seen[line.Msg] = true
	}
	for _, msg := range []string{"serving", "request", "stopped"} {
		if !seen[msg] {
			t.Errorf("no line says %q:\n%s", msg, s.stderr)
		}
	}
}

// TestSecretsStayOutOfTheLog sends secrets wherever a client might put them.
func TestSecretsStayOutOfTheLog(t *testing.T) {
	t.Parallel()
	for _, format := range []string{"text", "json"} {
		s := start(t, withArgs("--access-log", "--log-format", format))
		owner := s.ownerKey()
		staging := newKey(t, s.database, "--name", "staging", "--environment", "staging")
		c := newClient(t, s, owner)
		c.do(t, "POST", "/v1/pets", `{"name":"secret-name","categoryId":1}`)
		c.do(t, "POST", "/v1/pets", `{"name":"secret-name","categoryId":"secret-category"}`)
		c.do(t, "POST", "/v1/pets", `secret-broken-body`)
		c.get(t, "/v1/pets?limit=secret-limit&api_key="+owner+"&cursor=secret-cursor")
		c.do(t, "GET", "/v1/pets", "", "X-Request-Id", "secret request id\tnot fit to log", "Cookie", "secret-cookie")
		for _, wrong := range []string{staging, owner[:len(owner)-1] + "!", "secret-foreign-key-0123456789"} {
			newClient(t, s, wrong).get(t, "/v1/pets")
		}
		newClient(t, s, "").do(t, "GET", "/v1/pets", "", "Authorization", "Basic secret-basic")
		s.stop()
		log := s.stderr.String()
		if n := strings.Count(log, `"request"`) + strings.Count(log, "msg=request "); n < 9 {
			t.Errorf("%d requests are in the log, want all 9:\n%s", n, log)
		}
		for _, secret := range []string{"secret", owner, owner[9:30], staging, staging[9:30], "ast_"} {
			if strings.Contains(log, secret) {
				t.Errorf("%q is in the log:\n%s", secret, log)
			}
		}
	}
}
