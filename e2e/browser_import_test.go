//go:build linux

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"animalstore"

	"github.com/chromedp/chromedp"

	goclient "animalstore/client"
	"animalstore/internal/testenv"
)

// testFiles imports files in the console. Its tests send the same forms as a browser without
// JavaScript.
func testFiles(t *testing.T, browser context.Context) {
	s := seeded(t)
	p := openTab(t, browser, s)
	p.signIn(s, s.ownerKey())
	i := importer{p, s, newGoClient(t, s.url, s.ownerKey()), t.TempDir()}
	i.importFiles()
	i.tab = openTab(t, browser, s) // the other has seen refusals, which browsers report
	i.dropFile()
}

// importer uses files of pets in a tab.
type importer struct {
	*tab
	s   *server
	api *goclient.Client
	dir string
}

// choose opens the page and chooses a file.
func (i importer) choose(name, content string) {
	i.t.Helper()
	file := mustWrite(i.t, filepath.Join(i.dir, name), content, 0o644)
	i.open(i.s, "/console/pets/import", "#files")
	i.do("choose "+name, chromedp.SetUploadFiles(chromedp.CSS("#files"), []string{file}))
}

const (
	checkButton = "#import button:not(.primary)"
	addButton   = "#import .primary"
	refused     = "#result .notice.wrong"
	checked     = "#result .notice.done + h2"
	added       = `#result [href="/console/pets"]`
)

func (i importer) importFiles() {
	i.t.Helper()
	wrong, right := "name,categoryId\n", "name,categoryId\n"
	for n := range 30 {
		line := fmt.Sprintf("Line %d,", n)
		right += line + "900\n"
		if n%5 < 2 {
			wrong += line + "cats\n"
		} else {
			wrong += line + "900\n"
		}
	}
	i.choose("pets.csv", wrong)
	i.do("check", click(checkButton), visible(refused))
	if got := eval[[]string](i.tab, `[...document.querySelectorAll("#result tbody td:first-child")].map(e => e.textContent)`); strings.Join(got, " ") != "2 3 7 8 12 13 17 18 22 23 27 28" {
		i.t.Errorf("got mistakes in the lines %q, want 12", got)
	}
	i.checkPage("import-mistakes")
	i.wantPets(900, 0)

	i.choose("pets.csv", right)
	i.do("check", click(checkButton), visible(checked))
	i.checkPage("import-checked")
	notice, rows := i.text("#result .notice"), eval[int](i.tab, `document.querySelectorAll("#result tbody tr").length`)
	if rows != 10 || !strings.Contains(notice, "30 pets") || !strings.Contains(notice, "900") {
		i.t.Errorf("got %d rows and %q, want ten rows, the count and the new category", rows, notice)
	}
	i.wantPets(900, 0)
	i.do("add", click(addButton), visible(added))
	i.wantPets(900, 30)
	i.choose("pets.csv", right)
	i.do("add again", click(addButton), visible(added))
	i.wantPets(900, 30)

	i.importMany()
}

// importMany adds many pets, and sees the progress.
func (i importer) importMany() {
	i.t.Helper()
	count := testenv.Count(600, 10_000)
	var many strings.Builder
	for n := range count {
		fmt.Fprintf(&many, "{\"name\": \"Many %d\", \"categoryId\": 1}\n", n)
	}
	i.choose("many.jsonl", many.String())
	eval[any](i.tab, `window.seen = new Set(); new MutationObserver(() => seen.add(document.querySelector("progress").value)).observe(document.querySelector(".progress span"), { childList: true }); null`)
	i.do("add many", click(addButton), visible(added))
	if got, want := strings.ReplaceAll(i.text("#result .notice"), ",", ""), fmt.Sprintf("Added %d pets.", count); !strings.HasPrefix(got, want) {
		i.t.Errorf("got %q, want %q", got, want)
	}
	if eval[int](i.tab, `seen.size`) < 3 {
		i.t.Errorf("got the progress %v, want several steps", eval[[]float64](i.tab, `[...seen]`))
	}
}

// wantPets counts the pets of a category.
func (i importer) wantPets(category int64, want int) {
	i.t.Helper()
	got := 0
	for _, err := range i.api.ListPets(i.t.Context(), animalstore.PetQuery{CategoryID: &category}) {
		if err != nil {
			i.t.Fatal(err)
		}
		got++
	}
	if got != want {
		i.t.Fatalf("got %d pets, want %d", got, want)
	}
}

// dropFile drops a file on the form, which checks it. Then the connection is lost.
func (i importer) dropFile() {
	i.t.Helper()
	i.open(i.s, "/console/pets/import", "#files")
	eval[any](i.tab, `{
		const files = new DataTransfer();
		files.items.add(new File(["name,categoryId\nDropped,902\n"], "dropped.csv"));
		document.querySelector("#import").dispatchEvent(new DragEvent("drop", { dataTransfer: files, bubbles: true, cancelable: true }));
	}`)
	i.do("see what was dropped", visible(checked))
	i.wantClean()
	i.s.kill()
	i.do("add", click(addButton), visible(refused))
}
