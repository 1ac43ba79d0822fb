package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// TestInterruptedImport interrupts an import and runs the last line that it printed. After
// that, each pet is in the store exactly once.
func TestInterruptedImport(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		file  string // "-" is standard input
		flags []string
		fault func(*importFault, http.ResponseWriter, *http.Request)
	}{
		{"stopped", "pets.csv", []string{"--again"}, (*importFault).loseResponse},
		{"stopped, not again", "pets.csv", nil, (*importFault).loseResponse},
		{"file with quotes and spaces", `-the shop's "$pets" .csv`, []string{"--again", "--json", "--"}, (*importFault).loseResponse},
		{"standard input", "-", []string{"--again", "--format", "csv"}, (*importFault).loseResponse},
		{"server lost", "pets.csv", []string{"--again"}, (*importFault).loseServer},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			const pets = 500
			s := start(t)
			key := adminKey(t, s.database)
			f := newImportFault(t, s, test.fault)
			content := "name,categoryId\n"
			for i := range pets {
				content += fmt.Sprintf("pet %d,7\n", i)
			}
			dir := t.TempDir()
			run := func(program string, args ...string) *server {
				cmd := exec.Command(program, args...)
				cmd.Dir, cmd.Env = dir, append(cleanEnv(), "ANIMALSTORE_API_KEY="+key)
				if test.file == "-" {
					cmd.Stdin = strings.NewReader(content)
				} else {
					mustWrite(t, filepath.Join(dir, test.file), content, 0o666)
				}
				return startProcess(t, cmd)
			}

			first := run(binary, append(append([]string{"pets", "import", "--url", f.front.URL}, test.flags...), test.file)...)
			select {
			case <-f.felt:
				first.signal(syscall.SIGINT)
			case <-first.exited:
			}
			if first.wait() == 0 {
				t.Fatalf("the import wasn't interrupted:\n%s", first.output())
			}
			f.repair()
			lines := strings.Split(strings.TrimSpace(first.stderr.String()), "\n")
			if second := run("sh", "-c", lines[len(lines)-1]); second.wait() != 0 {
				t.Fatalf("the last line fails:\n%s\n%s", first.output(), second.output())
			}

			times := map[string]int{}
			for _, p := range newClient(t, f.server, key).allPets(t, 0) {
				times[p.Name]++
			}
			for i := range pets {
				if got := times[fmt.Sprint("pet ", i)]; got != 1 {
					t.Fatalf("pet %d of %d was added %d times, after\n%s", i, pets, got, first.output())
				}
			}
		})
	}
}

// firstFault is the first request with a fault, counted from 1.
const firstFault = 4

// importFault is a proxy before a server, with a fault from one request on.
type importFault struct {
	t        *testing.T
	server   *server
	front    *httptest.Server
	proxy    http.Handler
	requests atomic.Int64
	repaired atomic.Bool
	felt     chan struct{} // closed when the import won't get further
	feel     func()        // closes felt
}

func newImportFault(t *testing.T, s *server, fault func(*importFault, http.ResponseWriter, *http.Request)) *importFault {
	t.Helper()
	target, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	felt := make(chan struct{})
	f := &importFault{t: t, server: s, felt: felt, feel: sync.OnceFunc(func() { close(felt) }), proxy: httputil.NewSingleHostReverseProxy(target)}
	f.front = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if f.requests.Add(1) < firstFault || f.repaired.Load() {
			f.proxy.ServeHTTP(w, r)
			return
		}
		fault(f, w, r)
	}))
	t.Cleanup(f.front.Close)
	return f
}

// loseResponse passes a request to the server, but never its response to the import.
func (f *importFault) loseResponse(_ http.ResponseWriter, r *http.Request) {
	f.proxy.ServeHTTP(httptest.NewRecorder(), r)
	f.feel()
	<-r.Context().Done()
}

// loseServer kills the server. The import notices it in its first retry.
func (f *importFault) loseServer(w http.ResponseWriter, _ *http.Request) {
	if f.requests.Load() > firstFault {
		f.feel()
	} else {
		f.server.kill()
	}
	w.WriteHeader(http.StatusBadGateway)
}

// repair ends the fault.
func (f *importFault) repair() {
	f.repaired.Store(true)
	if f.server.ended() {
		f.server = start(f.t, onDatabase(f.server.database), onAddress(strings.TrimPrefix(f.server.url, "http://")))
	}
}
