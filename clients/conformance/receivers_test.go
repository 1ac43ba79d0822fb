package conformance

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"animalstore"
)

// TestReceivers: the receivers in docs/webhooks.md accept the webhooks of a real server,
// before and after it rotates the secret, and refuse others.
func TestReceivers(t *testing.T) {
	t.Parallel()
	server := startReal(t)
	for name, start := range map[string]func(*testing.T) *receiver{"typescript": startJSReceiver, "python": startPythonReceiver} {
		t.Run(name, func(t *testing.T) {
			c, r := server.owner(), start(t)
			hook, err := c.CreateWebhook(t.Context(), animalstore.NewWebhook{URL: r.url})
			if err != nil {
				t.Fatal(err)
			}
			r.trust(t, hook.Secret)
			r.refuses(t)
			ping := func() {
				t.Helper()
				if _, err := c.PingWebhookAs(t.Context(), hook.ID, animalstore.PetCreated); err != nil {
					t.Fatal(err)
				}
				if got := r.line(t); !strings.HasPrefix(got, "ping_") || !strings.HasSuffix(got, " pet.created") {
					t.Errorf("the receiver got %q, want a pet.created", got)
				}
			}
			ping()
			rotated, err := c.RotateWebhook(t.Context(), hook.ID, 0)
			if err != nil {
				t.Fatal(err)
			}
			r.trust(t, rotated.Secret)
			ping()
		})
	}
}

// receiver is a running receiver of webhooks. It reads secrets from its input and prints
// what it receives.
type receiver struct {
	url   string
	in    io.Writer
	lines chan string
}

func startJSReceiver(t *testing.T) *receiver {
	t.Helper()
	buildTypeScript(t)
	dir := linkedPackage(t)
	write(t, filepath.Join(dir, "receiver.js"), string(mustRead(t, "testdata/receiver.js")))
	write(t, filepath.Join(dir, "run.js"), `import { createInterface } from "node:readline";
import { receiver } from "./receiver.js";

const secrets = [];
const server = receiver(secrets, (id, event) => console.log(id, event.type));
server.listen(0, "127.0.0.1", () => console.log(server.address().port));
for await (const secret of createInterface({ input: process.stdin })) {
  secrets.push(secret);
  console.log("trusted");
}
process.exit();
`)
	return startReceiver(t, dir, "node", "run.js")
}

func startPythonReceiver(t *testing.T) *receiver {
	t.Helper()
	p := buildPython(t)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "receiver.py"), string(mustRead(t, "testdata/receiver.py")))
	write(t, filepath.Join(dir, "run.py"), `import sys
import threading
from http.server import ThreadingHTTPServer

from receiver import receiver

secrets = []
server = ThreadingHTTPServer(("127.0.0.1", 0), receiver(secrets, lambda id, event: print(id, event["type"], flush=True)))
threading.Thread(target=server.serve_forever, daemon=True).start()
print(server.server_port, flush=True)
for line in sys.stdin:
    secrets.append(line.strip())
    print("trusted", flush=True)
`)
	return startReceiver(t, dir, "env", "PYTHONPATH="+p.sources(), p.python, "run.py")
}

func startReceiver(t *testing.T, dir string, argv ...string) *receiver {
	t.Helper()
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	r := &receiver{in: in, lines: make(chan string)}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			select {
			case r.lines <- lines.Text():
			case <-time.After(time.Minute): // the test has failed
			}
		}
		_ = cmd.Wait()
	}()
	t.Cleanup(func() {
		in.Close()
		<-done
	})
	r.url = "http://127.0.0.1:" + r.line(t) + "/hook"
	return r
}

// line is the next line that the receiver prints.
func (r *receiver) line(t *testing.T) string {
	t.Helper()
	select {
	case line := <-r.lines:
		return line
	case <-time.After(30 * time.Second):
		t.Fatal("the receiver printed nothing")
		return ""
	}
}

// trust makes the receiver accept one more secret.
func (r *receiver) trust(t *testing.T, secret string) {
	t.Helper()
	fmt.Fprintln(r.in, secret)
	if got := r.line(t); got != "trusted" {
		t.Fatalf("got %q, want trusted", got)
	}
}

// refuses sends a webhook that isn't genuine.
func (r *receiver) refuses(t *testing.T) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url, strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("webhook-id", "evt_1")
	req.Header.Set("webhook-timestamp", fmt.Sprint(time.Now().Unix()))
	req.Header.Set("webhook-signature", "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusBadRequest {
		t.Errorf("a webhook that isn't genuine gets %d, want 400", res.StatusCode)
	}
}
