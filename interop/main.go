// Command interop generates a client from the OpenAPI document with each generator
// that callers are known to use, compiles it, and runs the same scenario with it
// against a server. It also runs the linters for OpenAPI documents, receivers of webhooks
// with libraries of others, assistants with the official packages, and the scenarios of our
// client for TypeScript in Deno and Bun.
//
// Every directory next to this file has a generator's settings, a script that
// generates, compiles and runs, and the scenario in that language. Run it with
//
//	make interop
//	make interop CLIENTS="java python"
package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

const (
	// work has the generated clients and everything that is downloaded. git and Go
	// ignore it.
	work = "interop/.work"

	generatorVersion = "7.25.0"
	ownerKey         = "interop-owner-key-of-a-store-that-is-thrown-away"
)

var all = []string{"lint", "axe", "openapi-fetch", "hey-api", "java", "python", "go", "openapi-python-client", "oapi-codegen", "webhooks-js", "webhooks-python", "mcp-js", "mcp-python", "runtimes"}

// generated are the clients that openapi-generator makes.
var generated = []string{"java", "python", "go"}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	names := os.Args[1:]
	if len(names) == 0 {
		names = all
	}
	if err := run(ctx, names); err != nil {
		fmt.Fprintln(os.Stderr, "interop:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, names []string) error {
	if err := os.MkdirAll(work, 0o755); err != nil {
		return err
	}
	dir, err := filepath.Abs(work)
	if err != nil {
		return err
	}
	generator := ""
	if slices.ContainsFunc(names, func(name string) bool { return slices.Contains(generated, name) }) {
		if generator, err = fetchGenerator(ctx, dir); err != nil {
			return err
		}
	}
	url, stop, err := startServer(ctx, dir)
	if err != nil {
		return err
	}
	defer stop()
	env := append(os.Environ(),
		"DOCUMENT="+filepath.Join(dir, "..", "..", "openapi", "openapi.yaml"),
		"OPENAPI_GENERATOR="+generator,
		"ANIMALSTORE_URL="+url+"/v1",
		"ANIMALSTORE_API_KEY="+ownerKey,
		"ANIMALSTORE_PROGRAM="+filepath.Join(dir, "animalstore"),
	)
	failed := 0
	for _, name := range names {
		begun := time.Now()
		out, err := runClient(ctx, filepath.Join(dir, name), name, env)
		result := "ok"
		if err != nil {
			failed++
			result = "FAILED"
			fmt.Fprintf(os.Stderr, "%s\n%s: %v\n", out, name, err)
		}
		fmt.Printf("%-6s %-22s %4.0f s\n", result, name, time.Since(begun).Seconds())
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d failed", failed, len(names))
	}
	return nil
}

// fetchGenerator downloads openapi-generator, once, and returns its path. Maven checks
// the download and uses the mirror that the user has set up.
func fetchGenerator(ctx context.Context, dir string) (string, error) {
	jar := filepath.Join(dir, "openapi-generator-cli-"+generatorVersion+".jar")
	if _, err := os.Stat(jar); err == nil {
		return jar, nil
	}
	out, err := exec.CommandContext(ctx, "mvn", "-q", "-B", "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy",
		"-Dartifact=org.openapitools:openapi-generator-cli:"+generatorVersion+":jar", "-DoutputDirectory="+dir).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("fetch openapi-generator %s: %w\n%s", generatorVersion, err, out)
	}
	return jar, nil
}

// startServer builds the program and starts it with an empty store on a free port.
func startServer(ctx context.Context, dir string) (url string, stop func(), err error) {
	binary := filepath.Join(dir, "animalstore")
	if out, err := exec.CommandContext(ctx, "go", "build", "-o", binary, "./cmd/animalstore").CombinedOutput(); err != nil {
		return "", nil, fmt.Errorf("build the server: %w\n%s", err, out)
	}
	store, err := os.MkdirTemp("", "interop")
	if err != nil {
		return "", nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	address := listener.Addr().String()
	listener.Close()
	server := exec.Command(binary, "serve", "--listen", address, "--ops-listen", "", "--webhook-networks", "127.0.0.0/8", "--database", "sqlite:"+filepath.Join(store, "store.db"))
	server.Env = append(os.Environ(), "ANIMALSTORE_OWNER_KEY="+ownerKey)
	if err := server.Start(); err != nil {
		return "", nil, err
	}
	stop = func() {
		_ = server.Process.Signal(syscall.SIGTERM)
		_ = server.Wait()
		_ = os.RemoveAll(store)
	}
	if err := awaitReady(ctx, "http://"+address+"/readyz"); err != nil {
		stop()
		return "", nil, err
	}
	return "http://" + address, stop, nil
}

func awaitReady(ctx context.Context, url string) error {
	for range 300 {
		res, err := http.Get(url)
		if err == nil {
			res.Body.Close()
			if res.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(100 * time.Millisecond):
		}
	}
	return errors.New("the server doesn't start serving")
}

// runClient copies a client's directory to dir, which keeps what was downloaded
// before, and runs its script there.
func runClient(ctx context.Context, dir, name string, env []string) ([]byte, error) {
	files, err := filepath.Glob(filepath.Join("interop", name, "*"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("there is no client %s: want some of %q", name, all)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	for _, file := range files {
		if out, err := exec.Command("cp", "-R", file, dir).CombinedOutput(); err != nil {
			return out, err
		}
	}
	cmd := exec.CommandContext(ctx, "sh", "run")
	cmd.Dir, cmd.Env = dir, env
	return cmd.CombinedOutput()
}
