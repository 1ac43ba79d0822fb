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

	"github.com/spf13/cobra"
)

// keyRing is what the commands on keys work on: a database or a server.
type keyRing interface {
	create(context.Context, animalstore.NewKey) (key animalstore.Key, secret string, err error)
	// list lists keys, the latest first.
	list(ctx context.Context, pageSize int) iter.Seq2[animalstore.Key, error]
	// show returns a key, and how it stands with its limits where that is known.
	show(ctx context.Context, id int64) (animalstore.Key, *ratelimit.Status, error)
	// usage is by the hour, the latest first.
	usage(ctx context.Context, id int64, hours int) (animalstore.Key, []animalstore.Usage, error)
	rotate(ctx context.Context, id int64, grace time.Duration) (key animalstore.Key, secret string, err error)
	setPlan(ctx context.Context, id int64, plan animalstore.Plan, custom animalstore.Limits) (animalstore.Key, error)
	revoke(ctx context.Context, id int64) (animalstore.Key, error)
	unban(ctx context.Context, id int64) (animalstore.Key, error)
}

// keysPlace is where the keys are.
type keysPlace struct {
	database string
	server   connection
}

// onServer decides between the two. To change keys in the wrong place does harm,
// so there is no guessing.
func (at *keysPlace) onServer(cmd *cobra.Command) (bool, error) {
	url, database := given(cmd, "url"), given(cmd, "database")
	switch {
	case url && database:
		return false, usageError{errors.New("--url and --database exclude each other: keys are managed over HTTP or straight in the database")}
	case url || database:
		return url, nil
	case at.server.url != "" && cmd.Flag("url").Changed && cmd.Flag("database").Changed:
		return false, usageError{fmt.Errorf("%s and %s are both set: say with --url or --database where the keys are", variable("url"), variable("database"))}
	}
	return at.server.url != "" && cmd.Flag("url").Changed, nil
}

// do runs f on the keys. Only create makes a database that is not there.
func (at *keysPlace) do(cmd *cobra.Command, asJSON bool, f func(keyRing, *printer) error) error {
	onServer, err := at.onServer(cmd)
	if err != nil {
		return err
	}
	if !onServer {
		return withDatabase(cmd.Context(), at.database, cmd.Name() != "create", func(store db.DB) error {
			return f(databaseKeys{store}, newPrinter(cmd, asJSON))
		})
	}
	err = at.server.do(cmd, asJSON, func(s session) error { return f(serverKeys{s.Client}, s.printer) })
	var told toldError
	if errors.As(err, &told) && told.code == exitCredential {
		told.text = sentence(told.text) + " On the server's machine, --database needs no key"
		return told
	}
	return err
}

// doWithKey runs f for the key with the id in arg.
func (at *keysPlace) doWithKey(cmd *cobra.Command, asJSON bool, arg string, f func(ring keyRing, p *printer, id int64) error) error {
	id, err := parseID(arg, "keys")
	if err != nil {
		return err
	}
	return at.do(cmd, asJSON, func(ring keyRing, p *printer) error {
		err := f(ring, p, id)
		var coded *animalstore.Error
		if errors.Is(err, db.ErrNotFound) || errors.As(err, &coded) && coded.Code == animalstore.KeyNotFound {
			return toldError{err, fmt.Sprintf(`there is no key with id %d: "animalstore keys list" shows the keys`, id), exitNotFound}
		}
		return err
	})
}
