package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/keys"
	"animalstore/internal/photo/phototest"
	"animalstore/internal/testenv"

	"github.com/spf13/cobra"
)

// TestExamples runs every example of every command's help as a newcomer would:
// pasted into a shell. Each command runs in its own directory with a store in
// animalstore.db. A client command also gets a server with a copy of that store.
func TestExamples(t *testing.T) {
	testenv.Slow(t)
	testenv.Need(t, "bash")
	store := filepath.Join(t.TempDir(), "animalstore.db")
	if err := fillStore(store); err != nil {
		t.Fatal(err)
	}
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
					home.startAndStop(t, line)
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
const untilStopped = "timeout 1 "

// needsOtherServer reports whether an example uses PostgreSQL or Redis.
func needsOtherServer(line string) bool {
	return strings.Contains(line, "postgres://") || strings.Contains(line, "redis://") || strings.Contains(line, "rediss://")
}

// fillStore creates a database with everything that the examples refer to: the
// owner key and another one, twelve pets in category 7, three photos of the fifth,
// orders for the last two, and a webhook with 27 deliveries.
func fillStore(file string) error {
	ctx, now := context.Background(), animalstore.At(time.Now())
	store, err := sqlite.Open(ctx, file, sqlite.Options{})
	if err != nil {
		return err
	}
	defer store.Close()
	all := animalstore.Read | animalstore.Write | animalstore.Admin
	for i, secret := range []string{ownerKey, keys.Mint(animalstore.Production)} {
		k := animalstore.NewKey{Name: fmt.Sprintf("key %d", i), Plan: animalstore.PlanBusiness, Permissions: all, Environment: animalstore.Production}
		if err := k.Validate(); err != nil {
			return err
		}
		if _, err := store.CreateKey(ctx, k, keys.Hash(secret), now); err != nil {
			return err
		}
	}
	for i := range 12 {
		pet := animalstore.NewPet{Name: fmt.Sprintf("Rex %d", i), CategoryID: 7, Status: animalstore.PetAvailable}
		if _, _, err := store.CreatePet(ctx, pet, nil); err != nil {
			return err
		}
	}
	for _, pet := range []int64{11, 12} {
		if _, _, err := store.PlaceOrder(ctx, pet, now, nil); err != nil {
			return err
		}
	}
	for range 3 {
		picture := phototest.JPEG(phototest.Drawing(40, 30))
		photo := db.NewPhoto{PetID: 5, ContentType: "image/jpeg", Width: 40, Height: 30, Image: picture, Thumbnail: picture, At: now}
		if _, _, err := store.AddPhoto(ctx, photo, 1<<30, nil); err != nil {
			return err
		}
	}
	if _, err := store.PutCategory(ctx, animalstore.Category{ID: -3, Name: "Fish"}, func(*animalstore.Category) error { return nil }); err != nil {
		return err
	}
	hook := animalstore.NewWebhook{URL: receiver, Types: animalstore.DefaultEventPatterns}
	if _, err := store.CreateWebhook(ctx, hook, "whsec_dGVzdA==", now); err != nil {
		return err
	}
	for range 27 {
		if _, err := store.PingWebhook(ctx, 1, animalstore.WebhookPing, now); err != nil {
			return err
		}
	}
	return nil
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
	copyFile(t, store, filepath.Join(h.dir, "animalstore.db"))
	copyFile(t, store, filepath.Join(h.dir, "monday.db")) // a backup
	for name, content := range map[string]string{
		"key.txt":    "a-key-that-was-created-elsewhere\n",
		"pets.csv":   "name,categoryId\nRex,7\n",
		"pets.jsonl": `{"name":"Rex","categoryId":7}` + "\n",
		"rex.jpg":    string(phototest.JPEG(phototest.Drawing(400, 300))),
	} {
		if err := os.WriteFile(filepath.Join(h.dir, name), []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return h
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, content, 0o666)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// url is the address of a server on a copy of the store.
func (h *home) url() string {
	if h.server == nil {
		copyFile(h.t, h.store, filepath.Join(h.dir, "served.db"))
		var err error
		if h.server, err = startServer(h.dir, "--listen", "127.0.0.1:0", "--database", "sqlite:served.db", "--webhook-networks", "127.0.0.0/8"); err != nil {
			h.t.Fatal(err)
		}
		h.t.Cleanup(h.server.kill)
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
func (h *home) startAndStop(t *testing.T, line string) {
	t.Helper()
	cmd := h.command("exec " + line)
	s, err := awaitServing(cmd)
	if err != nil {
		t.Errorf("%s\ngot %v, want a server", line, err)
		return
	}
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := s.cmd.Wait(); err != nil {
		t.Errorf("%s\ngot %v after SIGTERM, want success", line, err)
	}
}
