package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"animalstore/internal/photo/phototest"
	"animalstore/internal/testenv"

	"github.com/spf13/cobra"
)

// TestExamples_Slow runs every example of every command's help as a newcomer would:
// pasted into a shell. Each command runs in its own directory with a store in
// animalstore.db. A client command also gets a server with a copy of that store.
func TestExamples_Slow(t *testing.T) {
	testenv.Need(t, "bash")
	store := filledStore(t)
	eachCommand(newCommand(), func(cmd *cobra.Command) {
		if cmd.Example == "" {
			return // TestHelpIsComplete reports that
		}
		path, example := cmd.CommandPath(), strings.ReplaceAll(cmd.Example, "\\\n", "")
		t.Run(strings.ReplaceAll(path, " ", "-"), func(t *testing.T) {
			t.Parallel()
			ran := 0
			home := newHome(t, store)
			for line := range strings.SplitSeq(example, "\n") {
				line = strings.TrimSpace(line)
				if line == "" || strings.HasPrefix(line, "#") || needsOtherServer(line) {
					continue
				}
				ran++
				if strings.Contains(line, "--follow") || strings.Contains(line, "webhooks listen") { // it doesn't end
					line = untilStopped + line + "; test $? = 124"
				}
				if strings.HasPrefix(line, "animalstore serve") {
					home.startAndStop(line)
				} else if out, err := home.command(line).CombinedOutput(); err != nil || strings.Contains(string(out), "request failed") {
					t.Errorf("%s\ngot %v, want success:\n%s", line, err, out)
				}
			}
			if ran == 0 {
				t.Errorf("got no example that can run here in %q, want one", example)
			}
		})
	})
}

// untilStopped precedes a command that doesn't end.
const untilStopped = "timeout 0.5 "

// needsOtherServer reports whether an example uses PostgreSQL, Redis or a bucket.
func needsOtherServer(line string) bool {
	return strings.Contains(line, "postgres://") || strings.Contains(line, "redis://") || strings.Contains(line, "rediss://") || strings.Contains(line, "s3://")
}

// fill creates everything that the examples refer to.
const fill = `
for n in $(seq 12); do animalstore pets create --name "Rex $n" --category 7; done
animalstore orders create 11
animalstore orders create 12
animalstore pets photos add rex.jpg rex.jpg rex.jpg --pet 5
animalstore categories create --name Fish -- -3
animalstore keys create --name shop
animalstore webhooks create --to ` + receiver + `
for n in $(seq 27); do animalstore webhooks ping 1; done`

// filledStore returns the file of a store with everything that the examples refer to.
func filledStore(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	s := mustStart(t, dir, "--webhook-networks", "127.0.0.0/8")
	writeFile(t, filepath.Join(dir, "rex.jpg"), phototest.JPEG(phototest.Drawing(40, 30)))
	cmd := exec.Command("bash", "-ec", fill)
	cmd.Dir, cmd.Env = dir, s.command().Env
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	s.stop(t)
	return filepath.Join(dir, "animalstore.db")
}

// receiver is the address of webhooks here. Nothing listens there.
const receiver = "http://127.0.0.1:1/hook"

// home is where the examples of a command run.
type home struct {
	dir    string
	server *serverProcess // nil until a command needs it
	t      *testing.T
	store  string
}

func newHome(t *testing.T, store string) *home {
	h := &home{dir: t.TempDir(), t: t, store: store}
	for _, dir := range []string{".zfunc", ".config/fish/completions", "lib"} {
		if err := os.MkdirAll(filepath.Join(h.dir, dir), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	h.copyStore("animalstore.db")
	h.copyStore("monday.db") // a backup
	for name, content := range map[string]string{
		"key.txt":    "a-key-that-was-created-elsewhere\n",
		"pets.csv":   "name,categoryId\nRex,7\n",
		"pets.jsonl": `{"name":"Rex","categoryId":7}` + "\n",
		"rex.jpg":    string(phototest.JPEG(phototest.Drawing(400, 300))),
	} {
		writeFile(t, filepath.Join(h.dir, name), []byte(content))
	}
	return h
}

func writeFile(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o666); err != nil {
		t.Fatal(err)
	}
}

// copyStore copies the store to a file here.
func (h *home) copyStore(name string) {
	h.t.Helper()
	content, err := os.ReadFile(h.store)
	if err != nil {
		h.t.Fatal(err)
	}
	writeFile(h.t, filepath.Join(h.dir, name), content)
}

// url is the address of a server on a copy of the store.
func (h *home) url() string {
	if h.server == nil {
		h.copyStore("served.db")
		h.server = mustStart(h.t, h.dir, "--database", "sqlite:served.db", "--webhook-networks", "127.0.0.0/8")
	}
	return h.server.url
}

// command is the command of an example, with addresses and paths that exist here.
func (h *home) command(line string) *exec.Cmd {
	if strings.Contains(line, "https://pets.example") {
		line = strings.ReplaceAll(line, "https://pets.example", h.url())
	}
	line = strings.NewReplacer(
		"/var/lib/animalstore", filepath.Join(h.dir, "lib"),
		"--listen :8080", "--listen 127.0.0.1:0",
		"--listen 127.0.0.1:8090", "--listen 127.0.0.1:0",
		"--pets 1000000", "--pets 1000",
		"--photos 100", "--photos 3",
		"https://example.com/hook", receiver,
	).Replace(line)
	cmd := exec.Command("bash", "-o", "pipefail", "-c", line)
	cmd.Dir = h.dir
	cmd.Env = append(os.Environ(), "HOME="+h.dir, keyVariable+"="+ownerKey, "ANIMALSTORE_LISTEN=127.0.0.1:0", "ANIMALSTORE_OPS_LISTEN=")
	name, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(line, untilStopped), "animalstore "), " ")
	for _, client := range groups[1].commands {
		if name == client {
			cmd.Env = append(cmd.Env, "ANIMALSTORE_URL="+h.url())
		}
	}
	return cmd
}

// startAndStop runs an example that serves until it is stopped.
func (h *home) startAndStop(line string) {
	h.t.Helper()
	s, err := awaitServing(h.command("exec " + line))
	if err != nil {
		h.t.Fatalf("%s\ngot %v, want a server", line, err)
	}
	s.stop(h.t)
}
