package main

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"animalstore/internal/testenv"
)

// TestEventsFollow: events are printed as they happen, also those after the server was
// away, until Ctrl-C.
func TestEventsFollow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server, err := startServer(dir, "--listen", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { server.kill() }()
	env := append(os.Environ(), keyVariable+"="+ownerKey, "ANIMALSTORE_URL="+server.url)
	add := func(name string) {
		t.Helper()
		cmd := exec.Command("animalstore", "pets", "add", "--name", name, "--category", "7")
		cmd.Env = env
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
	}
	var shown lockedBuffer
	follow := exec.Command("animalstore", "events", "--follow", "--after", "0", "--type", "pet.created")
	follow.Env, follow.Stdout, follow.Stderr = env, &shown, &shown
	if err := follow.Start(); err != nil {
		t.Fatal(err)
	}
	defer follow.Process.Kill()
	await := func(text string) {
		t.Helper()
		testenv.Eventually(t, text+" is shown", func() bool { return strings.Contains(shown.String(), text) })
	}
	add("Rex")
	await("\tpet/1\tRex, available\tkey 1\n")
	server.kill()
	await("retrying in")
	if server, err = startServer(dir, "--listen", strings.TrimPrefix(server.url, "http://")); err != nil {
		t.Fatal(err)
	}
	add("Mia")
	await("\tpet/2\tMia, available\tkey 1\n")
	if err := follow.Process.Signal(syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	follow.Wait()
	if code := follow.ProcessState.ExitCode(); code != 130 {
		t.Errorf("got exit code %d, want 130:\n%s", code, shown.String())
	}
	if n := strings.Count(shown.String(), "pet.created"); n != 2 {
		t.Errorf("got %d events, want 2:\n%s", n, shown.String())
	}
}
