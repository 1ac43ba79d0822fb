package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/ratelimit"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

// keyStore is where the commands work on keys: a database or a server.
type keyStore interface {
	create(context.Context, animalstore.NewKey) (key animalstore.Key, secret string, err error)
	// list lists keys, the latest first.
	list(ctx context.Context, pageSize int) iter.Seq2[animalstore.Key, error]
	// show returns a key, and its current limits if they are known.
	show(ctx context.Context, id int64) (animalstore.Key, *ratelimit.Status, error)
	// usage is by the hour, the latest first.
	usage(ctx context.Context, id int64, hours int) (animalstore.Key, []animalstore.Usage, error)
	rotate(ctx context.Context, id int64, grace time.Duration) (key animalstore.Key, secret string, err error)
	setPlan(ctx context.Context, id int64, plan animalstore.Plan, custom animalstore.Limits) (animalstore.Key, error)
	revoke(ctx context.Context, id int64) (animalstore.Key, error)
	// unban reports whether the key was banned.
	unban(ctx context.Context, id int64) (key animalstore.Key, lifted bool, err error)
}

// keyLocation is the flags that say where the keys are.
type keyLocation struct {
	database string
	server   connection
}

// onServer decides between the two. It never guesses, because changing keys in
// the wrong place does harm.
func (at *keyLocation) onServer(cmd *cobra.Command) (bool, error) {
	url, database := given(cmd, "url"), given(cmd, "database")
	switch {
	case url && database:
		return false, usageError{errors.New("--url and --database can't be used together: keys are managed over HTTP or directly in the database")}
	case url || database:
		return url, nil
	case at.server.url != "" && cmd.Flag("url").Changed && cmd.Flag("database").Changed:
		return false, usageError{fmt.Errorf("%s and %s are both set: choose with --url or --database", variable("url"), variable("database"))}
	}
	return at.server.url != "" && cmd.Flag("url").Changed, nil
}

// do runs f on the keys. Only create adds a database that doesn't exist.
func (at *keyLocation) do(cmd *cobra.Command, asJSON bool, f func(keyStore, *terminal.Printer) error) error {
	onServer, err := at.onServer(cmd)
	if err != nil {
		return err
	}
	if !onServer {
		return withDatabase(cmd.Context(), at.database, cmd.Name() != "create", func(store db.DB) error {
			return f(databaseKeys{store}, newPrinter(cmd, asJSON))
		})
	}
	err = at.server.do(cmd, asJSON, func(s session) error { return f(serverKeys{s.Client}, s.Printer) })
	var cli cliError
	if errors.As(err, &cli) && cli.code == exitCredential {
		cli.text = sentence(cli.text) + " On the server's machine, --database needs no key"
		return cli
	}
	return err
}

// doWithKey runs f for the key with the id in arg.
func (at *keyLocation) doWithKey(cmd *cobra.Command, asJSON bool, arg string, f func(store keyStore, p *terminal.Printer, id int64) error) error {
	id, err := parseID(arg, "keys")
	if err != nil {
		return err
	}
	return at.do(cmd, asJSON, func(store keyStore, p *terminal.Printer) error {
		err := f(store, p, id)
		var coded *animalstore.Error
		if errors.Is(err, db.ErrNotFound) || errors.As(err, &coded) && coded.Code == animalstore.KeyNotFound {
			return cliError{err, fmt.Sprintf(`there is no key with id %d: "animalstore keys list" shows the keys`, id), exitNotFound}
		}
		return err
	})
}
