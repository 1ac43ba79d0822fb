package dbadmin

import (
	"context"
	"fmt"

	"animalstore/internal/db/sqlite"
	"animalstore/internal/server"
	"animalstore/internal/terminal"
)

// Migrate creates or updates the tables of a database, by opening it as a server would,
// and prints their versions. If they are up to date it opens nothing, because a server
// may be running. It calls fatal if the database can't be trusted any more.
func Migrate(ctx context.Context, url string, fatal func(error), p *terminal.Printer) error {
	from, to, err := server.DatabaseVersions(ctx, url)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("The tables are up to date: version %d.", to)
	if from != to {
		store, err := server.OpenDatabase(ctx, url, sqlite.Options{Serve: true, Fatal: fatal})
		if err != nil {
			return err
		}
		if err := store.Close(); err != nil {
			return err
		}
		text = fmt.Sprintf("The tables were updated from version %d to version %d.", from, to)
	}
	if p.JSON {
		return p.PrintJSON(struct {
			From int64 `json:"from"`
			To   int64 `json:"to"`
		}{from, to})
	}
	_, err = fmt.Fprintln(p.Out, text)
	return err
}
