package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/db/transfer"
	"animalstore/internal/testenv"
)

// localConfig configures a server on a free port with a new file. No timeout ends before a
// test does.
func localConfig(t testing.TB) Config {
	t.Helper()
	return Config{
		Database: "sqlite:" + filepath.Join(t.TempDir(), "store.db"),
		Listen:   "127.0.0.1:0",
		Timeouts: Timeouts{Drain: testenv.Deadline},
		Hooks:    Hooks{NoSync: true, RequestTimeout: testenv.Deadline},
	}
}

// running is a server running in the background.
type running struct {
	*Server
	stop  func()
	ended chan error
}

func run(t testing.TB, cfg Config) *running {
	t.Helper()
	s, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	r := &running{s, stop, make(chan error, 1)}
	done := make(chan struct{})
	go func() {
		r.ended <- s.Run(ctx)
		close(done)
	}()
	t.Cleanup(func() {
		stop()
		<-done // it uses its file until then
	})
	return r
}

// wait waits for Run and returns its error.
func (r *running) wait(t testing.TB) error {
	t.Helper()
	select {
	case err := <-r.ended:
		return err
	case <-time.After(testenv.Deadline):
		t.Fatalf("Run hasn't returned after %v", testenv.Deadline)
		return nil
	}
}

// TestRunFinishesRequests: Run returns after its context has ended, but not before the
// request in progress has its response, unless that takes too long.
func TestRunFinishesRequests(t *testing.T) {
	for _, test := range []struct {
		takes time.Duration // after the end of the context
		want  string
		err   error
	}{
		{DefaultTimeouts.Drain - time.Second, "whole", nil},
		{DefaultTimeouts.Drain + time.Second, "", context.DeadlineExceeded},
	} {
		synctest.Test(t, func(t *testing.T) {
			inside := make(chan struct{})
			s, network := runInBubble(t, func(cfg *Config) {
				cfg.Hooks.Middleware = func(http.Handler) http.Handler {
					return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
						close(inside)
						select {
						case <-time.After(test.takes):
							io.WriteString(w, "whole")
						case <-r.Context().Done():
						}
					})
				}
			})
			client := network.Connect()
			defer client.Close()
			io.WriteString(client, "GET / HTTP/1.0\r\n\r\n")
			<-inside
			s.stop()
			response, err := io.ReadAll(client)
			if _, got, _ := strings.Cut(string(response), "\r\n\r\n"); got != test.want || err != nil {
				t.Errorf("a request that takes %v: got %q, %v, want %q", test.takes, got, err, test.want)
			}
			if err := s.wait(t); !errors.Is(err, test.err) {
				t.Errorf("got %v, want %v", err, test.err)
			}
			if _, err := network.Accept(); !errors.Is(err, net.ErrClosed) {
				t.Errorf("the listener after Run: got %v, want it closed", err)
			}
		})
	}
}

// TestTakenPort: a failed start creates no owner key, makes no backup and leaves the
// database usable for the next start. A server can start without metrics.
func TestTakenPort(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for _, ops := range []bool{false, true} {
		t.Run(fmt.Sprint("ops ", ops), func(t *testing.T) {
			cfg := localConfig(t)
			bad := cfg
			if ops {
				bad.OpsListen = taken.Addr().String()
			} else {
				bad.Listen = taken.Addr().String()
			}
			bad.Backups = transfer.Schedule{Dir: t.TempDir(), Every: time.Hour, Keep: 1}
			_, err := New(t.Context(), bad)
			var wrong *SettingError
			want := map[bool]string{false: "Listen", true: "OpsListen"}[ops]
			if !errors.As(err, &wrong) || wrong.Setting != want {
				t.Fatalf("got %v, want a SettingError of %s", err, want)
			}
			if files, err := os.ReadDir(bad.Backups.Dir); err != nil || len(files) > 0 {
				t.Errorf("got %v, %v in the directory of backups, want nothing", files, err)
			}
			s, err := New(t.Context(), cfg)
			if err != nil {
				t.Fatalf("the next start: %v", err)
			}
			defer s.Close()
			if owner, err := s.CreateOwnerKey(t.Context(), ""); err != nil || !owner.Created {
				t.Errorf("got %+v, %v, want the owner key created by the start that succeeds", owner, err)
			}
		})
	}
	cfg := localConfig(t)
	var log bytes.Buffer
	cfg.OpsListen, cfg.OpsOptional, cfg.Log = taken.Addr().String(), true, slog.New(slog.NewTextHandler(&log, nil))
	s, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if !strings.Contains(log.String(), "no metrics") {
		t.Errorf("without the optional metrics: got the log %q", log.String())
	}
}

// TestOwnerKey: the first key of a database is created once, with the given secret or a
// new one.
func TestOwnerKey(t *testing.T) {
	const given = "a-key-from-elsewhere-0123456789"
	cfg := localConfig(t)
	s, err := New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if _, err := s.CreateOwnerKey(t.Context(), "x y"); err == nil {
		t.Error("a secret that can't be sent: got no error")
	}
	for _, test := range []struct {
		secret string
		want   OwnerKey
	}{
		{given, OwnerKey{Secret: given, Created: true, Exists: true}},
		{given, OwnerKey{Secret: given, Created: false, Exists: true}},
		{given + "-other", OwnerKey{Secret: given + "-other"}},
	} {
		if got, err := s.CreateOwnerKey(t.Context(), test.secret); err != nil || got != test.want {
			t.Errorf("got %+v, %v, want %+v", got, err, test.want)
		}
	}
	keys, err := s.DB().Keys(t.Context(), db.Page{Limit: 10})
	if err != nil || len(keys) != 1 || keys[0].Permissions != animalstore.Read|animalstore.Write|animalstore.Admin {
		t.Errorf("got %+v, %v, want one key that may do everything", keys, err)
	}
	events, _, err := s.DB().Events(t.Context(), db.EventQuery{Limit: 10})
	if err != nil || len(events) != 1 || events[0].Type != animalstore.KeyCreated || events[0].Actor != animalstore.ActorService {
		t.Errorf("got events %+v, %v, want key.created by the service", events, err)
	}
}

// TestCloseOrder: the usage of finished requests is saved before the database closes.
func TestCloseOrder(t *testing.T) {
	cfg := localConfig(t)
	s := run(t, cfg)
	owner, err := s.CreateOwnerKey(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), "GET", s.URL()+"/v1/pets", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+owner.Secret)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	s.stop()
	if err := errors.Join(s.wait(t), s.Close()); err != nil {
		t.Fatal(err)
	}
	// Opening the file shows that it was closed, and what it contains.
	store, err := sqlite.Open(t.Context(), strings.TrimPrefix(cfg.Database, "sqlite:"), sqlite.Options{Serve: true})
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	usage, err := store.Usage(t.Context(), 1, animalstore.Time{})
	if err != nil || len(usage) != 1 || usage[0].Admitted != 1 {
		t.Errorf("got usage %+v, %v, want the one request", usage, err)
	}
}

// TestDatabaseURL: a password appears in no error and no output.
func TestDatabaseURL(t *testing.T) {
	for _, url := range []string{"", "store.db", "sqlite:", "mysql://root:hunter2@host/x", "postgres://root:hunter2@host:port/x"} {
		err := CheckDatabaseURL("--database", url)
		if err == nil || !strings.HasPrefix(err.Error(), "--database") || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: got %v, want an error that names the flag and no password", url, err)
		}
		if _, opened := OpenDatabase(t.Context(), url, sqlite.Options{}); opened == nil || strings.Contains(opened.Error(), "hunter2") {
			t.Errorf("%q: OpenDatabase got %v, want an error without a password", url, opened)
		}
	}
	for url, want := range map[string]string{
		"sqlite:store.db": "sqlite:store.db",
		"postgres://root:hunter2@db.example:5433/store?sslmode=disable": "postgres://db.example:5433/store",
	} {
		if err := CheckDatabaseURL("--database", url); err != nil {
			t.Errorf("%q: got %v, want no error", url, err)
		}
		if got := RedactDatabaseURL(url); got != want {
			t.Errorf("%q: got %q, want %q", url, got, want)
		}
	}
}

// TestFastPath: net/http serves what needs its own deadlines or is sent in pieces.
func TestFastPath(t *testing.T) {
	for target, want := range map[string]bool{
		"/v1/pets?limit=1":       true,
		"/v1/pets/1":             true,
		"/v1/photos?petId=1":     true,
		"/v1/events?wait=1":      false,
		"/v1/pets/1/photos":      false,
		"/v1/photos/1/image":     false,
		"/v1/photos/1/thumbnail": false,
		"/console":               false,
		"/livez":                 false,
	} {
		if got := onFastPath(target); got != want {
			t.Errorf("%s: got %t, want %t", target, got, want)
		}
	}
}
