package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/db/postgres/pgtest"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/keys"
	"animalstore/internal/photo/phototest"
	"animalstore/internal/testenv"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite the texts that tests compare with")

// TestMain puts the program in PATH, for scripts and examples.
func TestMain(m *testing.M) { os.Exit(runTests(m)) }

func runTests(m *testing.M) int {
	dir, err := os.MkdirTemp("", "animalstore-cmd-")
	if err == nil {
		defer os.RemoveAll(dir)
		_, err = testenv.Build(dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	os.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	defer pgtest.Close()
	return m.Run()
}

// TestScripts runs the command line as people do: see testdata/script. Longer
// texts are compared in full; go test ./cmd/animalstore -update rewrites them.
// Scripts have these commands in addition to the usual ones:
//
//	exits CODE COMMAND…       runs a command that exits with that code
//	used FILE KEY HOURS A R   adds usage HOURS ago: admitted and refused requests
//	banned FILE KEY [AHEAD]   bans a key, by a clock that is ahead
//	opens FILE KEYFILE [AHEAD] checks that the secret in KEYFILE belongs to a live key,
//	                          by a clock that is ahead
//	serving FILE [FLAG…]      runs a server on that database, whose owner key is
//	                          ownerKey, and sets the environment for its client
//	impostor KIND             is like serving, but runs one of impostors instead
//	setkey FILE               makes the secret in FILE the key of the client
//	terminal CODE COMMAND…    is like exits, on a terminal of 80 columns, or WIDTH,
//	                          where the line TYPED is typed; standard output is
//	                          what the terminal shows
//	failed DATABASE KEY CODE REQUEST AGO
//	                          stores a failed request of a key
//	served FILE               locks a database like a server until the script ends
//	drawing FILE WIDTH HEIGHT draws a picture
//	damage FILE STATEMENTS    runs statements in a database
//	newer DATABASE            turns a database into one of a later version
//	connected DATABASE        stays connected to PostgreSQL until the script ends
func TestScripts(t *testing.T) {
	t.Parallel()
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		Cmds:                scriptCommands,
	})
}

var scriptCommands = map[string]func(*testscript.TestScript, bool, []string){
	"exits": exits, "used": used, "banned": banned, "failed": failed, "opens": opens,
	"served": scriptServed, "damage": scriptDamage, "newer": scriptNewer, "connected": scriptConnected,
	"serving": serving, "terminal": scriptTerminal, "setkey": setKey, "impostor": impostor,
	"drawing": scriptDrawing,
}

func scriptDrawing(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: drawing FILE WIDTH HEIGHT")
	}
	width, err := strconv.Atoi(args[1])
	ts.Check(err)
	height, err := strconv.Atoi(args[2])
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), phototest.PNG(phototest.Drawing(width, height)), 0o600))
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE COMMAND…")
	}
	err := ts.Exec(args[1], args[2:]...)
	code := 0
	if err != nil {
		coded, ok := err.(interface{ ExitCode() int })
		if !ok {
			ts.Fatalf("%q: %v", args[1:], err)
		}
		code = coded.ExitCode()
	}
	wantCode(ts, args, code)
}

// wantCode fails unless the exit code is the first of args.
func wantCode(ts *testscript.TestScript, args []string, code int) {
	if want := number(ts, args[0]); int64(code) != want {
		ts.Fatalf("%q: got exit code %d, want %d", args[1:], code, want)
	}
}

func number(ts *testscript.TestScript, s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	ts.Check(err)
	return n
}

// inStore opens a script's database briefly.
func inStore(ts *testscript.TestScript, file string, f func(db.DB) error) {
	store, err := sqlite.Open(context.Background(), ts.MkAbs(file), sqlite.Options{})
	ts.Check(err)
	err = f(store)
	ts.Check(store.Close())
	ts.Check(err)
}

func used(ts *testscript.TestScript, _ bool, args []string) {
	hour := time.Now().Truncate(time.Hour).Add(-time.Duration(number(ts, args[2])) * time.Hour)
	inStore(ts, args[0], func(store db.DB) error {
		return store.SaveUsage(context.Background(), []db.KeyUsage{{
			KeyID: number(ts, args[1]), Hour: animalstore.At(hour), Admitted: number(ts, args[3]), Refused: number(ts, args[4]), LastUsed: animalstore.At(hour),
		}})
	})
}

func banned(ts *testscript.TestScript, _ bool, args []string) {
	now := aheadBy(ts, args[2:])
	inStore(ts, args[0], func(store db.DB) error {
		return store.SaveLimitStates(context.Background(), []db.KeyLimitState{{KeyID: number(ts, args[1]), LimitState: db.LimitState{
			Day:      db.Window{Used: 12, End: now.Add(time.Hour).UnixMilli()},
			BannedAt: now.UnixMilli(), BannedUntil: now.Add(time.Hour).UnixMilli(), BanLevel: 1,
		}}})
	})
}

func failed(ts *testscript.TestScript, _ bool, args []string) {
	ago, err := time.ParseDuration(args[4])
	ts.Check(err)
	route, path := "/v1/pets/{petId}", "/v1/pets/9"
	inStore(ts, args[0], func(store db.DB) error {
		return store.AddFailures(context.Background(), []animalstore.Failure{{
			Time: animalstore.At(time.Now().Add(-ago)), KeyID: number(ts, args[1]), Code: animalstore.Code(args[2]), RequestID: args[3],
			Method: "GET", Route: &route, Path: &path, Status: 404, Message: "there is no pet with this id", DurationMs: 3,
		}}, db.KeptFailures)
	})
}

// aheadBy returns the time by a clock that is ahead, if that is given.
func aheadBy(ts *testscript.TestScript, ahead []string) time.Time {
	if len(ahead) == 0 {
		return time.Now()
	}
	d, err := time.ParseDuration(ahead[0])
	ts.Check(err)
	return time.Now().Add(d)
}

func opens(ts *testscript.TestScript, neg bool, args []string) {
	content, err := os.ReadFile(ts.MkAbs(args[1]))
	ts.Check(err)
	secret, at := strings.TrimSpace(string(content)), aheadBy(ts, args[2:])
	inStore(ts, args[0], func(store db.DB) error {
		key, found, err := store.KeyByHash(context.Background(), keys.Hash(secret))
		if err != nil {
			return err
		}
		if open := found && key.Live(at); open == neg {
			ts.Fatalf("the secret in %s: open is %t, want %t", args[1], open, !neg)
		}
		return nil
	})
}
