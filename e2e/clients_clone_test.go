package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"animalstore"
	"animalstore/internal/testenv"
)

// cloneReadmes are the READMEs of the clients, each with a section about clones.
var cloneReadmes = []string{"client/README.md", "clients/python/README.md", "clients/typescript/README.md"}

// TestClientsFromClone_Slow follows the READMEs of the clients in empty directories next to a
// clone: each installs its client, imports 10,000 pets, and prints their ids.
func TestClientsFromClone_Slow(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"bash", "node", "npm", "python3"} {
		testenv.Need(t, program)
	}
	dir := t.TempDir()
	source := filepath.Join(dir, "animalstore")
	if err := os.Rename(clone(t), source); err != nil {
		t.Fatal(err)
	}
	before := status(t, source)
	s := start(t)
	for i, readme := range cloneReadmes {
		t.Run(filepath.Dir(readme), func(t *testing.T) {
			importFromClone(t, s, readme, filepath.Join(dir, fmt.Sprint("shop", i)), i+1)
		})
	}
	if after := status(t, source); after != before {
		t.Errorf("the clone has changed:\n%s\nwas\n%s", after, before)
	}
}

// status is what git says about the files of a clone.
func status(t *testing.T, dir string) string {
	t.Helper()
	return output(t, exec.Command("git", "-c", "safe.directory=*", "-C", dir, "status", "--porcelain"))
}

// importFromClone does what the section of a README says, twice, because that is how one
// continues an import.
func importFromClone(t *testing.T, s *server, readme, dir string, category int) {
	const pets = 10_000
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(contents(filepath.Join("..", readme)), "\n## From a clone\n")
	if !found {
		t.Fatalf("%s has no section about clones", readme)
	}
	var catalogue strings.Builder
	for i := range pets {
		fmt.Fprintf(&catalogue, `{"sku": "S-%d", "name": "Rex %d", "categoryId": %d}`+"\n", i, i, category)
	}
	mustWrite(t, filepath.Join(dir, "catalogue.jsonl"), catalogue.String(), 0o600)
	blocks, problems := readBlocks(strings.ReplaceAll(section, "http://127.0.0.1:8080", s.url))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var last block
	var printed string
	run := func(b block) string {
		cmd := exec.Command("bash", "-e", "-c", b.text)
		cmd.Dir = dir
		cmd.Env = append(cleanEnv(), "ANIMALSTORE_API_KEY="+s.ownerKey(), "NO_PROXY=127.0.0.1,"+os.Getenv("NO_PROXY"))
		var stderr strings.Builder
		cmd.Stderr = &stderr
		out, err := cmd.Output()
		if err != nil {
			t.Fatalf("%s:%d: %v\n%s%s", readme, b.line, err, out, &stderr)
		}
		return string(out) + stderr.String()
	}
	for _, b := range blocks {
		if name, ok := b.file(); ok {
			mustWrite(t, filepath.Join(dir, name), b.text, 0o600)
		} else {
			last, printed = b, run(b)
		}
	}
	names := map[int64]string{}
	query := animalstore.PetQuery{CategoryID: new(int64(category))}
	for pet, err := range newGoClient(t, s.url, s.ownerKey()).ListPets(t.Context(), query) {
		if err != nil {
			t.Fatal(err)
		}
		names[pet.ID] = pet.Name
	}
	checkIDs(t, printed, names, pets, pets)
	checkIDs(t, run(last), names, pets, 0)
}

// checkIDs checks that a program printed the number and the id of each pet, in the order of
// its catalogue, and how many are new.
func checkIDs(t *testing.T, printed string, names map[int64]string, pets, added int) {
	t.Helper()
	lines := strings.Split(strings.TrimSpace(printed), "\n")
	if len(lines) != pets+1 {
		t.Fatalf("got %d lines, want %d: %.300s", len(lines), pets+1, printed)
	}
	for i, line := range lines[:pets] {
		var id int64
		sku := fmt.Sprintf("S-%d", i)
		if _, err := fmt.Sscanf(line, sku+" %d", &id); err != nil || names[id] != fmt.Sprint("Rex ", i) {
			t.Fatalf("line %d is %q, and that pet is %q, want that of %s", i+1, line, names[id], sku)
		}
	}
	if want := fmt.Sprintf("%d of %d pets are new", added, pets); !strings.HasSuffix(lines[pets], want) {
		t.Errorf("got %q at the end, want %q", lines[pets], want)
	}
}
