package e2e

import (
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
)

// TestREADMESession pastes the README's curl session into a shell, beside a server
// of the test's own instead of the one on the usual port.
func TestREADMESession(t *testing.T) {
	t.Parallel()
	needs(t, "curl")
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(string(readme), -1)
	if len(blocks) != 2 || strings.TrimSpace(blocks[0][1]) != "go run ./cmd/animalstore serve" {
		t.Fatalf("got %d blocks to paste, want the start and the session: %q", len(blocks), blocks)
	}
	s := start(t)
	session := strings.NewReplacer(
		"go run ./cmd/animalstore", binary,
		"http://127.0.0.1:8080", s.url,
	).Replace(blocks[1][1])
	shell := exec.Command("sh", "-e", "-c", session)
	shell.Env = append(cleanEnv(), "ANIMALSTORE_DATABASE=sqlite:"+s.database)
	out, err := shell.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	got := regexp.MustCompile(`HTTP/1\.1 \d+`).FindAllString(string(out), -1)
	want := "HTTP/1.1 201 HTTP/1.1 200 HTTP/1.1 200"
	if strings.Join(got, " ") != want || !strings.Contains(string(out), `"name":"Rex"`) {
		t.Errorf("got %q, want %q and Rex:\n%s", got, want, out)
	}
}
