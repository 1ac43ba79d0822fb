package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"animalstore/internal/testenv"
)

// TestImportIsInterrupted kills an import halfway and runs it again: in the end each
// line is in the store exactly once.
func TestImportIsInterrupted(t *testing.T) {
	testenv.Slow(t)
	t.Parallel()
	lines := testenv.Count(6_000, 1_000_000)
	s := start(t)
	key := loadKey(t, s.database)
	file := writePets(t, lines)

	// With one worker, even a fast machine is far from finished when the journal is
	// first written, after a second.
	first := startImport(t, s, key, file, 1)
	journal := file + ".progress"
	testenv.Eventually(t, "the import has written its journal", func() bool { return journalRows(journal) > 0 })
	first.Process.Kill()
	first.Wait()
	if done := journalRows(journal); done >= lines {
		t.Fatalf("the import was complete (%d lines) before it was killed", done)
	}

	second := startImport(t, s, key, file, 8)
	if err := second.Wait(); err != nil {
		t.Fatalf("the second run: %v\n%s", err, second.Stderr)
	}
	if exists(journal) {
		t.Errorf("%s is still there", journal)
	}
	wantEachOnce(t, s, key, lines)
}

// writePets writes a CSV file in which every name is unique.
func writePets(t *testing.T, lines int) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "pets.csv")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	out := bufio.NewWriter(file)
	fmt.Fprintln(out, "name,categoryId,status")
	for i := range lines {
		fmt.Fprintf(out, "pet %d,%d,%s\n", i, i%40, [...]string{"available", "pending", "sold"}[i%3])
	}
	if err := out.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return name
}

func startImport(t *testing.T, s *server, key, file string, workers int) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(binary, "pets", "import", file, "--url", s.url, "--concurrency", strconv.Itoa(workers))
	cmd.Env = append(cleanEnv(), "ANIMALSTORE_API_KEY="+key)
	cmd.Stderr = new(buffer)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill() })
	return cmd
}

func journalRows(path string) int {
	text, err := os.ReadFile(path)
	var journal struct{ Rows int }
	if err != nil || json.Unmarshal(text, &journal) != nil {
		return 0
	}
	return journal.Rows
}

// wantEachOnce checks that the store has every line of writePets exactly once.
func wantEachOnce(t *testing.T, s *server, key string, lines int) {
	t.Helper()
	seen := make([]int, lines)
	for _, p := range newClient(t, s, key).allPets(t, 0) {
		i, err := strconv.Atoi(strings.TrimPrefix(p.Name, "pet "))
		if err != nil || i < 0 || i >= lines {
			t.Fatalf("pet %q isn't in any line", p.Name)
		}
		if want := (pet{p.ID, p.Name, int64(i % 40), [...]string{"available", "pending", "sold"}[i%3]}); p != want {
			t.Errorf("got %+v, want %+v", p, want)
		}
		seen[i]++
	}
	for i, n := range seen {
		if n != 1 {
			t.Fatalf("line %d is in the store %d times, want once", i+2, n)
		}
	}
}
