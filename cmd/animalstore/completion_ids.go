package main

import (
	"context"
	"iter"
	"os"

	"animalstore"
	"animalstore/internal/commandline"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/keyadmin"
	"animalstore/internal/remote"

	"github.com/spf13/cobra"
)

// completeFrom offers the ids of a resource from a list, with a description of each.
func (r resource[T]) completeFrom(list commandline.Lister[T]) cobra.CompletionFunc {
	return commandline.CompleteIDs(r.columns[0].Text, r.describe, list)
}

// completeIDs offers the ids of a server.
func (r resource[T]) completeIDs(conn *connection) cobra.CompletionFunc {
	return r.completeFrom(listOver(conn, r.list))
}

// completeOneID is for a command with one id as its argument.
func (r resource[T]) completeOneID(conn *connection) cobra.CompletionFunc {
	return commandline.CompleteFirst(r.completeIDs(conn))
}

func listOver[T any](conn *connection, list remote.Lister[T]) commandline.Lister[T] {
	return func(ctx context.Context, _ *cobra.Command, typed string) iter.Seq2[T, error] {
		return remote.List(ctx, conn.server(), os.Getenv(keyVariable), list, typed)
	}
}

// listKeys lists the keys of the server or the database that the flags name.
func (at *keyLocation) listKeys(ctx context.Context, cmd *cobra.Command, typed string) iter.Seq2[animalstore.Key, error] {
	return func(yield func(animalstore.Key, error) bool) {
		onServer, err := at.onServer(cmd)
		if err != nil {
			return
		}
		if onServer {
			listOver(&at.server, keyResource.list)(ctx, cmd, typed)(yield)
			return
		}
		if store, err := at.database.open(ctx, sqlite.Options{MustExist: true}); err == nil {
			defer store.Close()
			keyadmin.Database{Store: store}.List(ctx, maxPage)(yield)
		}
	}
}
