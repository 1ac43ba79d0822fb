package conformance

import (
	"bufio"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestReceivers_Slow: the receivers in docs/webhooks.md accept a webhook with the right
// signature, and refuse others. Scenarios test the verification itself.
func TestReceivers_Slow(t *testing.T) {
	for name, start := range map[string]func(*testing.T, string) (string, *bufio.Scanner){
		"typescript": startTypeScriptReceiver, "python": startPythonReceiver,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			secret := []byte("0123456789abcdef0123456789abcdef")
			url, printed := start(t, "whsec_"+base64.StdEncoding.EncodeToString(secret))
			if got := sendWebhook(t, url, []byte("another secret")); got != http.StatusBadRequest {
				t.Errorf("a wrong signature gets %d, want 400", got)
			}
			if got := sendWebhook(t, url, secret); got != http.StatusNoContent {
				t.Errorf("the right signature gets %d, want 204", got)
			}
			if printed.Scan(); printed.Text() != "evt_1 pet.created" {
				t.Errorf("the receiver got %q, want evt_1 pet.created", printed.Text())
			}
		})
	}
}

// sendWebhook sends a webhook signed with a secret, and returns the response's status.
func sendWebhook(t *testing.T, url string, secret []byte) int {
	t.Helper()
	const body = `{"type": "pet.created", "timestamp": "2026-05-04T03:02:01.987Z", "data": {"id": 1, "name": "Rex", "categoryId": 7, "status": "available"}}`
	at := fmt.Sprint(time.Now().Unix())
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "evt_1.%s.%s", at, body)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("webhook-id", "evt_1")
	req.Header.Set("webhook-timestamp", at)
	req.Header.Set("webhook-signature", "v1,"+base64.StdEncoding.EncodeToString(mac.Sum(nil)))
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	return res.StatusCode
}

// guideReceiver is the receiver in a language that docs/webhooks.md shows.
func guideReceiver(t *testing.T, lang string) (text string) {
	t.Helper()
	for _, b := range documentBlocks(t) {
		if b.document == "docs_webhooks" && b.lang == lang {
			text += b.text
		}
	}
	return text
}

func startTypeScriptReceiver(t *testing.T, secret string) (url string, printed *bufio.Scanner) {
	t.Helper()
	buildTypeScript(t)
	dir := linkedPackage(t)
	write(t, filepath.Join(dir, "receiver.ts"), guideReceiver(t, "ts"))
	compile(t, dir, "--noCheck", "receiver.ts") // TestTypeScriptExamples_Slow checks its types
	write(t, filepath.Join(dir, "run.js"), `import { receiver } from "./receiver.js";

const server = receiver([process.argv[2]], (id, event) => console.log(id, event.type));
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
`)
	return startReceiver(t, dir, "node", "run.js", secret)
}

func startPythonReceiver(t *testing.T, secret string) (url string, printed *bufio.Scanner) {
	t.Helper()
	p := buildPython(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "receiver.py"), guideReceiver(t, "python"))
	write(t, filepath.Join(dir, "run.py"), `import sys
from http.server import ThreadingHTTPServer

from receiver import receiver

handler = receiver([sys.argv[1]], lambda id, event: print(id, event.type, flush=True))
server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
print(server.server_port, flush=True)
server.serve_forever()
`)
	return startReceiver(t, dir, p.installed, "run.py", secret)
}

// startReceiver runs a receiver, which prints its port and then what it receives.
func startReceiver(t *testing.T, dir string, argv ...string) (url string, printed *bufio.Scanner) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Dir = dir
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Wait() }) // the context kills it
	printed = bufio.NewScanner(out)
	printed.Scan()
	return "http://127.0.0.1:" + printed.Text(), printed
}
