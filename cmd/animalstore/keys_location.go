package main

import (
	"errors"
	"fmt"

	"animalstore"
	"animalstore/internal/commandline"
	"animalstore/internal/db"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/diagnose"
	"animalstore/internal/keyadmin"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

// keyLocation is the flags that say where the keys are.
type keyLocation struct {
	database databaseFlag
	server   connection
}

// onServer decides between the two. It never guesses, because changing keys in
// the wrong place does harm.
func (at *keyLocation) onServer(cmd *cobra.Command) (bool, error) {
	url, database := given(cmd, "url"), given(cmd, "database")
	switch {
	case url && database:
		return false, usagef("--url and --database can't be used together: keys are managed over HTTP or directly in the database")
	case url || database:
		return url, nil
	case at.server.url != "" && cmd.Flag("url").Changed && cmd.Flag("database").Changed:
		return false, usagef("%s and %s are both set: choose with --url or --database", variable("url"), variable("database"))
	}
	return at.server.url != "" && cmd.Flag("url").Changed, nil
}

// do runs f on the keys.
func (at *keyLocation) do(cmd *cobra.Command, f func(keyadmin.Keys, *terminal.Printer) error) error {
	onServer, err := at.onServer(cmd)
	if err != nil {
		return err
	}
	if !onServer {
		return at.withDatabase(cmd, func(store db.DB) error {
			return f(keyadmin.Database{Store: store}, newPrinter(cmd))
		})
	}
	err = at.server.do(cmd, func(s session) error { return f(keyadmin.Server{Client: s.Client}, s.Printer) })
	var cli cliError
	if errors.As(err, &cli) && cli.code == exitCredential {
		cli.text = diagnose.Sentence(cli.text) + " On the server's machine, --database needs no key"
		return cli
	}
	return err
}

// withDatabase runs f on the database, which a server may be using. Only create and
// import add one that doesn't exist.
func (at *keyLocation) withDatabase(cmd *cobra.Command, f func(db.DB) error) error {
	adds := cmd.Name() == "create" || cmd.Name() == "import"
	store, err := at.database.open(cmd.Context(), sqlite.Options{MustExist: !adds})
	if err != nil {
		return err
	}
	return errors.Join(f(store), store.Close())
}

// onKey makes cmd call run with the id in its argument. What can be checked without
// the keys belongs in cmd.PreRunE.
func (at *keyLocation) onKey(cmd *cobra.Command, run func(cmd *cobra.Command, store keyadmin.Keys, p *terminal.Printer, id int64) error) *cobra.Command {
	cmd.Args = oneID("key", "keys")
	cmd.ValidArgsFunction = commandline.CompleteFirst(keyResource.completeFrom(at.listKeys))
	jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id := commandline.IDs(args)[0]
		return at.do(cmd, func(store keyadmin.Keys, p *terminal.Printer) error {
			err := run(cmd, store, p, id)
			var coded *animalstore.Error
			if errors.Is(err, db.ErrNotFound) || errors.As(err, &coded) && coded.Code == animalstore.KeyNotFound {
				return cliError{err, fmt.Sprintf(`there is no key with id %d: "animalstore keys list" shows the keys`, id), exitNotFound}
			}
			return err
		})
	}
	return cmd
}
