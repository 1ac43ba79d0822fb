package main

import (
	"errors"
	"fmt"

	"animalstore"
	"animalstore/internal/cli"
	"animalstore/internal/db"
	"animalstore/internal/db/sqlite"
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
	url, database := cli.Given(cmd, "url"), cli.Given(cmd, "database")
	switch {
	case url && database:
		return false, cli.Usagef("--url and --database can't be used together: keys are managed over HTTP or directly in the database")
	case url || database:
		return url, nil
	case at.server.url != "" && cmd.Flag("url").Changed && cmd.Flag("database").Changed:
		return false, cli.Usagef("%s and %s are both set: choose with --url or --database", cli.Variable("url"), cli.Variable("database"))
	}
	return at.server.url != "" && cmd.Flag("url").Changed, nil
}

// do runs f on the keys.
func (at *keyLocation) do(cmd *cobra.Command, f func(keyStore, *terminal.Printer) error) error {
	onServer, err := at.onServer(cmd)
	if err != nil {
		return err
	}
	if !onServer {
		return at.withDatabase(cmd, func(store db.DB) error {
			return f(databaseKeys{store}, newPrinter(cmd))
		})
	}
	err = at.server.do(cmd, func(s session) error { return f(serverKeys{s.Client}, s.Printer) })
	var worded cliError
	if errors.As(err, &worded) && worded.code == exitCredential {
		worded.text = sentence(worded.text) + " On the server's machine, --database needs no key"
		return worded
	}
	return err
}

// withDatabase runs f on the database, which a server may be using. Only create and
// import make a new one, after asking: a server that uses another database would never
// see the key.
func (at *keyLocation) withDatabase(cmd *cobra.Command, f func(db.DB) error) error {
	adds := cmd.Name() == "create" || cmd.Name() == "import"
	store, err := at.database.open(cmd.Context(), sqlite.Options{MustExist: true})
	var failed *db.OpenError
	if adds && errors.As(err, &failed) && failed.Reason == db.Absent {
		if err := confirmNewStore(cmd, failed); err != nil {
			return err
		}
		store, err = at.database.open(cmd.Context(), sqlite.Options{})
	}
	if err != nil {
		return err
	}
	return errors.Join(f(store), store.Close())
}

// confirmNewStore returns an error unless --yes or a person agrees to a new store.
// absent says which one is missing.
func confirmNewStore(cmd *cobra.Command, absent *db.OpenError) error {
	if yes, _ := cmd.Flags().GetBool("yes"); yes {
		return nil
	}
	if !needsConfirmation(cmd) {
		return fmt.Errorf("%w: name the server's database with --database, or create a new store with --yes", absent)
	}
	return requireConfirmation(cmd, sentence(absent.Error())+" The key of a new store works only with a server on that store. Create one?")
}

// onKey makes cmd call run with the id in its argument. What can be checked without
// the keys belongs in cmd.PreRunE.
func (at *keyLocation) onKey(cmd *cobra.Command, run func(cmd *cobra.Command, store keyStore, p *terminal.Printer, id int64) error) *cobra.Command {
	cmd.Args = cli.OneID("key", "keys")
	jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id := cli.IDs(args)[0]
		return at.do(cmd, func(store keyStore, p *terminal.Printer) error {
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
