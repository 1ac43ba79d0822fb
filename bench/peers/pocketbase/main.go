// Command pocketbase serves pets with PocketBase, for the benchmark in ../..:
// PocketBase's own records API over a collection like ours.
//
//	pocketbase seed DIR < rows    creates DIR, prints a client's token
//	pocketbase serve DIR ADDRESS
//
// Rows are lines of name, category and status between tabs. The first pet gets
// the id pet000000000001 and so on, and was created a millisecond before the
// second.
//
// These settings differ from PocketBase's defaults, all of them for equal work or
// in its favour:
//   - synchronous is FULL instead of NORMAL, so that acknowledged writes survive
//     a power cut, as with every other server;
//   - requests aren't logged in its second database: ours doesn't log them by
//     default either;
//   - created is indexed, and status with it, because lists are ordered by it;
//   - names are indexed, because ours can find pets by name;
//   - a create stores its event in the same transaction, as in ours.
//
// Rules admit anyone with the token of a record in the collection clients.
// PocketBase has no API keys: this is the nearest equivalent. Its rate limiter is
// off by default. The database driver is its default, without cgo.
package main

import (
	"bufio"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/pocketbase/dbx"
	"github.com/pocketbase/pocketbase/apis"
	"github.com/pocketbase/pocketbase/core"
	_ "github.com/pocketbase/pocketbase/migrations"
	"github.com/pocketbase/pocketbase/tools/types"
)

func main() {
	var err error
	switch args := os.Args[1:]; {
	case len(args) == 2 && args[0] == "seed":
		err = seed(args[1])
	case len(args) == 3 && args[0] == "serve":
		err = serve(args[1], args[2])
	default:
		err = fmt.Errorf("usage: pocketbase seed DIR | serve DIR ADDRESS")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "pocketbase:", err)
		os.Exit(1)
	}
}

// open opens the app in dir. Except for synchronous, the pragmas are PocketBase's
// own.
func open(dir, synchronous string) (core.App, error) {
	app := core.NewBaseApp(core.BaseAppConfig{
		DataDir: dir,
		DBConnect: func(path string) (*dbx.DB, error) {
			return dbx.Open("sqlite", path+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)"+
				"&_pragma=journal_size_limit(200000000)&_pragma=synchronous("+synchronous+")"+
				"&_pragma=foreign_keys(ON)&_pragma=temp_store(MEMORY)&_pragma=cache_size(-32000)")
		},
	})
	return app, app.Bootstrap()
}

func serve(dir, addr string) error {
	app, err := open(dir, "FULL")
	if err != nil {
		return err
	}
	app.OnServe().BindFunc(func(e *core.ServeEvent) error {
		e.InstallerFunc = nil // asks for a first superuser
		return e.Next()
	})
	app.OnRecordCreateExecute("pets").BindFunc(createWithEvent)
	go func() {
		stop := make(chan os.Signal, 1)
		signal.Notify(stop, syscall.SIGTERM, os.Interrupt)
		<-stop
		event := &core.TerminateEvent{App: app}
		app.OnTerminate().Trigger(event, func(*core.TerminateEvent) error { return app.ResetBootstrapState() })
	}()
	return apis.Serve(app, apis.ServeConfig{HttpAddr: addr})
}

func createWithEvent(e *core.RecordEvent) error {
	events, err := e.App.FindCachedCollectionByNameOrId("events")
	if err != nil {
		return err
	}
	app := e.App
	defer func() { e.App = app }()
	return app.RunInTransaction(func(tx core.App) error {
		e.App = tx
		if err := e.Next(); err != nil {
			return err
		}
		event := core.NewRecord(events)
		event.Set("type", "pet.created")
		event.Set("subject", e.Record.Id)
		event.Set("data", e.Record)
		return tx.Save(event)
	})
}

func seed(dir string) error {
	app, err := open(dir, "OFF") // an interrupted seed is started over
	if err != nil {
		return err
	}
	if err := app.RunAllMigrations(); err != nil {
		return err
	}
	app.Settings().Logs.MaxDays = 0
	if err := app.Save(app.Settings()); err != nil {
		return fmt.Errorf("switch off logs: %w", err)
	}
	token, err := makeClient(app)
	if err != nil {
		return fmt.Errorf("create a client: %w", err)
	}
	pets, err := makePets(app)
	if err != nil {
		return fmt.Errorf("create the collection: %w", err)
	}
	if err := makeEvents(app); err != nil {
		return fmt.Errorf("create the collection of events: %w", err)
	}
	if err := app.RunInTransaction(insert); err != nil {
		return fmt.Errorf("insert pets: %w", err)
	}
	pets.AddIndex("pets_created", false, "created", "")
	pets.AddIndex("pets_status", false, "status, created", "")
	pets.AddIndex("pets_name", false, "name COLLATE NOCASE, created", "")
	if err := app.Save(pets); err != nil {
		return fmt.Errorf("index pets: %w", err)
	}
	fmt.Println(token)
	return app.ResetBootstrapState()
}

func makeClient(app core.App) (token string, err error) {
	clients := core.NewAuthCollection("clients")
	if err := app.Save(clients); err != nil {
		return "", err
	}
	client := core.NewRecord(clients)
	client.SetEmail("bench@example.com")
	client.SetRandomPassword()
	if err := app.Save(client); err != nil {
		return "", err
	}
	return client.NewStaticAuthToken(10 * 365 * 24 * time.Hour)
}

func makePets(app core.App) (*core.Collection, error) {
	pets := core.NewBaseCollection("pets")
	authenticated := types.Pointer(`@request.auth.id != ""`)
	pets.ListRule, pets.ViewRule, pets.CreateRule = authenticated, authenticated, authenticated
	pets.Fields.Add(
		&core.TextField{Name: "name", Required: true, Max: 1024},
		&core.NumberField{Name: "categoryId", OnlyInt: true},
		&core.SelectField{Name: "status", Required: true, MaxSelect: 1, Values: []string{"available", "pending", "sold"}},
		&core.AutodateField{Name: "created", OnCreate: true, Hidden: false},
	)
	return pets, app.Save(pets)
}

func makeEvents(app core.App) error {
	events := core.NewBaseCollection("events")
	events.Fields.Add(
		&core.TextField{Name: "type", Required: true},
		&core.TextField{Name: "subject", Required: true},
		&core.JSONField{Name: "data"},
		&core.AutodateField{Name: "created", OnCreate: true},
	)
	events.AddIndex("events_subject", false, "subject", "")
	return app.Save(events)
}

func insert(tx core.App) error {
	add := tx.DB().NewQuery("INSERT INTO pets (id, name, categoryId, status, created) VALUES ({:id}, {:name}, {:category}, {:status}, {:created})").Prepare()
	defer add.Close()
	first := time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)
	rows := bufio.NewScanner(os.Stdin)
	for i := 1; rows.Scan(); i++ {
		fields := strings.Split(rows.Text(), "\t")
		if len(fields) != 3 {
			return fmt.Errorf("row %d is %q: got %d fields, want 3", i, rows.Text(), len(fields))
		}
		_, err := add.Bind(dbx.Params{
			"id":       fmt.Sprintf("pet%012d", i),
			"name":     fields[0],
			"category": fields[1],
			"status":   fields[2],
			"created":  first.Add(time.Duration(i) * time.Millisecond).Format(types.DefaultDateLayout),
		}).Execute()
		if err != nil {
			return err
		}
	}
	return rows.Err()
}
