package conformance

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/testenv"
)

// TestTypeScriptPackage_Slow builds the package for npm as a release does, installs it in an
// empty directory, and uses it there as its users do.
func TestTypeScriptPackage_Slow(t *testing.T) {
	t.Parallel()
	buildTypeScript(t)
	archive := packTypeScript(t)
	app := installPackage(t, archive)
	example := readmeExample(t)
	t.Run("runs the example of its README in Node", func(t *testing.T) {
		url := startReal(t)
		write(t, filepath.Join(app, "example.mjs"), strings.ReplaceAll(example, "http://127.0.0.1:8080", url))
		cmd := exec.CommandContext(t.Context(), "node", "example.mjs")
		cmd.Dir, cmd.Env = app, append(withoutSettings(), "ANIMALSTORE_API_KEY="+ownerKey)
		out, err := cmd.CombinedOutput()
		if err != nil || string(out) != exampleOutput {
			t.Errorf("got %q and error %v, want %q", out, err, exampleOutput)
		}
	})
	t.Run("runs the example of its README in Chromium", func(t *testing.T) {
		testenv.OnlySoak(t, "a second runtime")
		runInChromium(t, app, example)
	})
	t.Run("has types", func(t *testing.T) { checkTypes(t, app, example) })
	t.Run("passes publint", func(t *testing.T) { mustRun(t, app, tool(t, "publint"), "run", "--strict", archive) })
}

// exampleOutput is what the example prints on an empty store.
const exampleOutput = "1 Rex\n409 pet_not_available\n"

// packTypeScript builds the package next to another one and returns its path.
func packTypeScript(t *testing.T) string {
	t.Helper()
	out := t.TempDir()
	other := filepath.Join(out, "animalstore-1.0.0-py3-none-any.whl")
	write(t, other, "the package for Python")
	mustRun(t, "../../tools", "go", "run", "./dist", "-client", "typescript", "-version", "1.0.0", "-out", out)
	if text := string(mustRead(t, other)); text != "the package for Python" {
		t.Errorf("building one package changed the other: %q", text)
	}
	return filepath.Join(out, "animalstore-1.0.0.tgz")
}

// installPackage installs the package in an empty directory, which it returns.
func installPackage(t *testing.T, archive string) string {
	t.Helper()
	app := t.TempDir()
	write(t, filepath.Join(app, "package.json"), `{"name": "app", "private": true, "type": "module"}`)
	mustRun(t, app, "npm", "install", "--offline", "--no-audit", "--no-fund", archive)
	if others, _ := filepath.Glob(filepath.Join(app, "node_modules", "[a-z@]*")); len(others) != 1 {
		t.Errorf("npm installed %v, want the package without dependencies", others)
	}
	return app
}

var jsBlock = regexp.MustCompile("(?s)```js\n(.*?)```")

// readmeExample is the example in the package's README.
func readmeExample(t testing.TB) string {
	t.Helper()
	found := jsBlock.FindSubmatch(mustRead(t, filepath.Join(typescriptDir, "README.md")))
	if found == nil {
		t.Fatal("the README has no example")
	}
	return string(found[1])
}

// checkTypes compiles the example as a user of strict TypeScript does, and calls that must
// not compile.
func checkTypes(t *testing.T, app, example string) {
	t.Helper()
	example = strings.Replace(example, "{ Client, ServiceError }", "{ Client, ServiceError, verifyWebhook, type EventType }", 1)
	write(t, filepath.Join(app, "example.ts"), strings.ReplaceAll(example, "process.env.ANIMALSTORE_API_KEY", `"key"`)+`
const status: "available" | "pending" | "sold" = pet.status;
const found: number = (await store.findPet(pet.id, { timeout: 1000, signal: AbortSignal.timeout(1) })).categoryId;
for (const picture of [new Blob(), new ArrayBuffer(0), new Uint8Array(0), new Blob().stream()]) {
  const image: Blob = await store.getImage((await store.addPhoto(pet.id, picture)).id);
  await store.addPhoto(pet.id, image);
}
for await (const event of store.events({ types: ["pet.*"] })) {
  if (event.type === "pet.created") {
    const name: string = event.data.name;
    // @ts-expect-error a pet has no orders
    event.data.petId;
    console.log(name);
  }
  // @ts-expect-error there is no such type of event
  event.type === "pet.barked";
}
const message = await verifyWebhook("whsec_", {}, "");
const ordered: number = message.type === "order.created" ? message.data.petId : 0;
const types: Record<EventType, true> = `+eventTypes()+`;
// @ts-expect-error a string is not a picture
await store.addPhoto(pet.id, "photo.jpg");
// @ts-expect-error a required field is missing
await store.createPet({ name: "Rex" });
// @ts-expect-error a field has the wrong type
await store.createPet({ name: "Rex", categoryId: "7" });
// @ts-expect-error there is no such status
await store.updatePet(1, { status: "gone" });
// @ts-expect-error there is no such filter
store.listPets({ color: "brown" });
export { found, ordered, status, types };
`)
	mustRun(t, app, tool(t, "tsc"), "--strict", "--noEmit", "--target", "es2022", "--lib", "es2022,dom", "--module", "nodenext", "example.ts")
}

// eventTypes is an object with all types of events, which compiles only if TypeScript has
// the same.
func eventTypes() string {
	var b strings.Builder
	for _, eventType := range animalstore.EventTypes {
		fmt.Fprintf(&b, "%q: true, ", eventType)
	}
	return "{ " + b.String() + "}"
}

// runInChromium runs the example in a page of another origin, which the server allows.
func runInChromium(t *testing.T, app, example string) {
	t.Helper()
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			browser = path
			break
		}
	}
	if browser == "" {
		testenv.Missing(t, "chromium is not installed: make check installs it as root with apt-get")
	}
	result := make(chan string)
	mux := http.NewServeMux()
	mux.Handle("GET /animalstore/", http.StripPrefix("/animalstore/", http.FileServer(http.Dir(filepath.Join(app, "node_modules", "animalstore", "dist")))))
	mux.HandleFunc("POST /result", func(_ http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		select {
		case result <- string(text):
		case <-r.Context().Done():
		}
	})
	pages := httptest.NewServer(mux)
	defer pages.Close()
	url := startReal(t, pages.URL)
	script := strings.NewReplacer("process.env.ANIMALSTORE_API_KEY", `"`+ownerKey+`"`, "http://127.0.0.1:8080", url).Replace(example)
	mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		fmt.Fprintf(w, page, script)
	})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	args := []string{"--headless", "--disable-gpu", "--no-proxy-server", "--disable-component-update", "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--user-data-dir=" + t.TempDir(), "--remote-debugging-port=0"}
	if os.Getuid() == 0 {
		args = append(args, "--no-sandbox")
	}
	cmd := exec.CommandContext(ctx, browser, append(args, pages.URL)...)
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 10 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case got := <-result:
		if got != exampleOutput {
			t.Errorf("got %q, want %q", got, exampleOutput)
		}
	case <-time.After(testenv.Deadline):
		t.Error("the page didn't report a result")
	}
	cancel()
	_ = cmd.Wait()
}

// page runs a script as a module and reports what it prints, or its error.
const page = `<!doctype html>
<script type="importmap">{"imports": {"animalstore": "/animalstore/index.js"}}</script>
<script>
let printed = "";
console.log = (...words) => { printed += words.join(" ") + "\n"; };
const report = (text) => fetch("/result", { method: "POST", body: text });
addEventListener("error", (event) => report("error: " + event.message));
addEventListener("unhandledrejection", (event) => report("rejected: " + event.reason));
</script>
<script type="module">
%s
report(printed);
</script>
`

// tool is the path of a program that package-lock.json names.
func tool(t testing.TB, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(typescriptDir, "node_modules", ".bin", name))
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func mustRead(t testing.TB, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return content
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
