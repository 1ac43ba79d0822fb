package bulk

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"animalstore/client"
	"animalstore/client/clienttest"
	"animalstore/internal/petfile"
	"animalstore/internal/terminal"
)

// TestImportAndExport: what was added and refused is counted, a second import of the
// same file adds nothing, and an export has what an import added.
func TestImportAndExport(t *testing.T) {
	store := clienttest.New(t)
	name := filepath.Join(t.TempDir(), "pets.csv")
	if err := os.WriteFile(name, []byte("name,categoryId\nRex,7\n,7\nMia,2\n"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"Added 2 pets; refused 1 line.",
		"Added 0 pets; 2 had been added by an earlier run; refused 1 line.",
	} {
		out, err := runImport(t, store, name)
		var refused RefusedError
		if !errors.As(err, &refused) || refused != 1 || err.Error() != "1 line couldn't be added: fix it and import it again" {
			t.Errorf("got %v, want an error for one line", err)
		}
		if !strings.Contains(out, want) || !strings.Contains(out, "line 3: ") {
			t.Errorf("got %q\nwant %q and line 3 in it", out, want)
		}
	}
	var out bytes.Buffer
	if err := service(store, &out).Export("-", petfile.CSV, store.Client.ListPets(t.Context(), client.PetQuery{})); err != nil {
		t.Fatal(err)
	}
	if want := "id,name,categoryId,status\n2,Mia,2,available\n1,Rex,7,available\nExported 2 pets.\n"; out.String() != want {
		t.Errorf("got %q, want %q", &out, want)
	}
}

func runImport(t *testing.T, store *clienttest.Server, name string) (string, error) {
	t.Helper()
	file, err := petfile.Open(name, nil, "")
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	var out bytes.Buffer
	err = service(store, &out).Import(t.Context(), file, 1)
	return out.String(), err
}

func service(store *clienttest.Server, out *bytes.Buffer) Service {
	return Service{
		Client:  store.Client,
		Printer: terminal.NewPrinter(out, out, false),
		Line:    terminal.NewLine(out, terminal.ScreenOf(out)),
		Key:     store.Key,
	}
}
