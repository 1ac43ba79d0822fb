package e2e

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"animalstore/internal/testenv"
)

// TestKillDuringImport_Slow kills an import, or the server under it, at a random point. After
// another run each line is in the store once, although many lines are equal.
func TestKillDuringImport_Slow(t *testing.T) {
	t.Parallel()
	const lines = 2_000
	s := start(t)
	key := loadKey(t, s.database)
	last := int64(0) // the highest id of the rounds before
	for round := range testenv.Count(4, 200) {
		file, want := writePets(t, lines, round)
		first, _ := startImport(t, s, key, file)
		reached := last + rand.Int64N(lines)
		testenv.Eventually(t, "the import has come that far", func() bool { return newestID(t, s, key) >= reached })
		if round%2 == 0 {
			first.Process.Kill()
		} else {
			s.kill()
			s = start(t, onDatabase(s.database), onAddress(strings.TrimPrefix(s.url, "http://")))
		}
		first.Wait()

		second, out := startImport(t, s, key, file)
		if err := second.Wait(); err != nil {
			t.Fatalf("the second run: %v\n%s", err, second.Stderr)
		}
		var result struct{ Added, Existing int }
		if err := json.Unmarshal([]byte(out.String()), &result); err != nil || result.Added+result.Existing != lines || int64(result.Existing) < reached-last {
			t.Errorf("round %d: killed after %d: got %s (%v), want %d in all", round, reached-last, out, err, lines)
		}
		stored := newClient(t, s, key).allPets(t, last)
		for id, p := range stored {
			want[p.Name]--
			last = max(last, id)
		}
		for name, missing := range want {
			if missing != 0 {
				t.Fatalf("round %d: %d more of %q are in the file than in the store (%d pets)", round, missing, name, len(stored))
			}
		}
	}
}

// writePets writes a CSV file in which nine of ten lines are equal, and returns how often it
// has each name.
func writePets(t *testing.T, lines, round int) (path string, names map[string]int) {
	t.Helper()
	names = map[string]int{}
	var content strings.Builder
	content.WriteString("name,categoryId\n")
	for i := range lines {
		name := fmt.Sprint("goldfish ", round)
		if i%10 == 0 {
			name += fmt.Sprint(" ", i)
		}
		names[name]++
		fmt.Fprintf(&content, "%s,7\n", name)
	}
	path = filepath.Join(t.TempDir(), "pets.csv")
	if err := os.WriteFile(path, []byte(content.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	return path, names
}

func startImport(t *testing.T, s *server, key, file string) (cmd *exec.Cmd, out *buffer) {
	t.Helper()
	out = new(buffer)
	cmd = exec.Command(binary, "pets", "import", file, "--url", s.url, "--json")
	cmd.Env = append(cleanEnv(), "ANIMALSTORE_API_KEY="+key)
	cmd.Stdout, cmd.Stderr = out, new(buffer)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	return cmd, out
}

// newestID is the id of the newest pet, or 0.
func newestID(t *testing.T, s *server, key string) int64 {
	t.Helper()
	a := newClient(t, s, key).get(t, "/v1/pets?limit=1")
	var page []pet
	if err := json.Unmarshal([]byte(a.body), &page); err != nil {
		t.Fatal(err)
	}
	if len(page) == 0 {
		return 0
	}
	return page[0].ID
}
