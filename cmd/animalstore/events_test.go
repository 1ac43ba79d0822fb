package main

import (
	"strings"
	"testing"
)

// TestEventsFollow: events are printed as they happen, also those after the server was
// away, until Ctrl-C.
func TestEventsFollow(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := mustStart(t, dir)
	follow := startInBackground(t, server.command("events", "--follow", "--after", "0", "--type", "pet.created"))
	server.mustRun(t, "pets", "add", "--name", "Rex", "--category", "7")
	follow.waitFor("\tpet/1\tRex, available\tkey 1, owner\n")
	server.kill()
	follow.waitFor("retrying in")
	server = mustStart(t, dir, "--listen", strings.TrimPrefix(server.url, "http://"))
	server.mustRun(t, "pets", "add", "--name", "Mia", "--category", "7")
	follow.waitFor("\tpet/2\tMia, available\tkey 1, owner\n")
	if code := follow.interrupt(); code != 130 {
		t.Errorf("got exit code %d after Ctrl-C, want 130", code)
	}
	since := startInBackground(t, server.command("events", "--follow", "--since", "1h", "--type", "pet.created"))
	since.waitFor("\tpet/1\t")
	since.waitFor("\tpet/2\t")
	since.interrupt()
	if n := strings.Count(follow.shown.String(), "pet.created"); n != 2 {
		t.Errorf("got %d events, want 2:\n%s", n, follow.shown.String())
	}
}
