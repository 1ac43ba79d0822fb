package conformance

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"animalstore/internal/photo/phototest"
)

// TestTypeScriptExamples_Slow compiles every example for TypeScript that is printed somewhere,
// as users of strict TypeScript do, and runs those on the docs page, on a store that contains
// everything they request.
func TestTypeScriptExamples_Slow(t *testing.T) {
	t.Parallel()
	buildTypeScript(t)
	dir := linkedPackage(t)
	// The service checks that the host of a webhook exists.
	examples := strings.ReplaceAll(string(mustRead(t, "../../internal/pages/examples.ts")), "https://example.com", "http://127.0.0.1:9")
	write(t, filepath.Join(dir, "examples.ts"), examples)
	compile(t, dir, append(writeBlocks(t, dir, ".ts", "js", "ts"), "examples.ts")...)
	write(t, filepath.Join(dir, "photo.jpg"), string(phototest.JPEG(phototest.Drawing(40, 30))))
	write(t, filepath.Join(dir, "run.js"), runExamples)
	url := startReal(t)
	cmd := exec.Command("node", "run.js", url, ownerKey)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.Contains(string(out), "all 44 ran") {
		t.Errorf("%v\n%s", err, out)
	}
}

// compile compiles programs of strict TypeScript for Node.
func compile(t *testing.T, dir string, files ...string) {
	t.Helper()
	mustRun(t, dir, append([]string{
		tool(t, "tsc"), "--strict", "--target", "es2022", "--lib", "es2022,dom,dom.asynciterable",
		"--module", "nodenext", "--skipLibCheck", "--types", "node",
	}, files...)...)
}

// runExamples adds what the examples request, and runs those last that remove it.
const runExamples = `import { Client } from "animalstore";
import * as examples from "./examples.js";

const store = new Client(process.argv[2], process.argv[3]);
for (let i = 0; i < 42; i++) {
  await store.createPet({ name: "Rex", categoryId: 7 });
}
for (let id = 1; id < 10; id++) {
  await store.placeOrder({ petId: id });
}
const first = [...Array(5).fill("addPhoto"), "createKey", "createWebhook", "pingWebhook"];
const last = ["deletePhoto", "deletePet", "revokeKey", "deleteWebhook"];
const others = Object.keys(examples).filter((name) => !first.includes(name) && !last.includes(name));
for (const name of [...first, ...others, ...last]) {
  if (name === "deletePet") {
    await store.updateOrder(10, { status: "cancelled" });
  }
  await examples[name](store).catch((error) => {
    throw new Error(name, { cause: error });
  });
}
console.log("all", Object.keys(examples).length, "ran");
`

// linkedPackage is an empty directory in which programs can import the package and Node's
// types.
func linkedPackage(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	source, err := filepath.Abs(typescriptDir)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "node_modules"), 0o755); err != nil {
		t.Fatal(err)
	}
	for name, target := range map[string]string{"animalstore": source, "@types": filepath.Join(source, "node_modules", "@types")} {
		if err := os.Symlink(target, filepath.Join(dir, "node_modules", name)); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "package.json"), `{"type": "module"}`)
	return dir
}
