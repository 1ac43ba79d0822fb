package conformance

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"animalstore/internal/photo/phototest"
)

// TestPythonExamples_Slow runs the examples for Python on the docs page, on a store that
// contains everything they request.
func TestPythonExamples_Slow(t *testing.T) {
	t.Parallel()
	p := buildPython(t)
	dir := t.TempDir()
	examples := string(mustRead(t, "../../internal/pages/examples.py"))
	// The server may send webhooks there, and no name has to be resolved.
	examples = strings.ReplaceAll(examples, "https://example.com/", "http://127.0.0.1:9/")
	write(t, filepath.Join(dir, "examples.py"), examples)
	write(t, filepath.Join(dir, "photo.jpg"), string(phototest.JPEG(phototest.Drawing(40, 30))))
	write(t, filepath.Join(dir, "run.py"), runPythonExamples)
	url := startReal(t)
	cmd := exec.Command(p.installed, "run.py", url, ownerKey)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "all 44 ran") {
		t.Errorf("%v\n%s", err, out)
	}
}

// runPythonExamples adds what the examples request, and runs those last that remove it.
const runPythonExamples = `import sys
import animalstore, examples

store = animalstore.Client(sys.argv[1], sys.argv[2])
for _ in range(42):
    examples.create_pet(store)
for pet_id in range(1, 10):
    store.place_order(pet_id)
for name in ["add_photo"] * 5 + ["create_key", "create_webhook", "ping_webhook"]:
    getattr(examples, name)(store)
last = ["delete_photo", "revoke_key", "delete_webhook", "delete_pet"]
names = [name for name in vars(examples) if hasattr(animalstore.Client, name) and not name.startswith("_")]
for name in [name for name in names if name not in last] + last:
    if name == "delete_pet":
        store.update_order(10, animalstore.OrderPatch(status="cancelled"))
    try:
        getattr(examples, name)(store)
    except Exception as e:
        raise SystemExit(f"{name}: {e}")
print("all", len(names), "ran")
`
