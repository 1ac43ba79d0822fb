package main

import (
	"context"
	"iter"
	"os"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/commandline"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/keyadmin"
	"animalstore/internal/remote"

	"github.com/spf13/cobra"
)

type idLister[T any] = commandline.Lister[T]

// completeIDs offers the ids of a resource, with a description of each.
func (r resource[T]) completeIDs(list idLister[T]) cobra.CompletionFunc {
	return commandline.CompleteIDs(r.columns[0].Text, r.describe, list)
}

// completeOneID is for a command with one id as its argument.
func (r resource[T]) completeOneID(list idLister[T]) cobra.CompletionFunc {
	return commandline.CompleteFirst(r.completeIDs(list))
}

// listOver lists from a server, or nothing if there can't be a client.
func listOver[T any](conn *connection, list func(ctx context.Context, c *client.Client, typed string) iter.Seq2[T, error]) idLister[T] {
	return func(ctx context.Context, _ *cobra.Command, typed string) iter.Seq2[T, error] {
		if c := conn.server().QuietClient(os.Getenv(keyVariable)); c != nil {
			return list(ctx, c, typed)
		}
		return func(func(T, error) bool) {}
	}
}

func listPets(conn *connection) idLister[animalstore.Pet] {
	return listOver(conn, remote.PetsThatBegin)
}

func listOrders(conn *connection) idLister[animalstore.Order] {
	return listOver(conn, func(ctx context.Context, c *client.Client, _ string) iter.Seq2[animalstore.Order, error] {
		return c.ListOrders(ctx, client.OrderQuery{})
	})
}

func listCategories(conn *connection) idLister[animalstore.Category] {
	return listOver(conn, func(ctx context.Context, c *client.Client, _ string) iter.Seq2[animalstore.Category, error] {
		return c.ListCategories(ctx, client.PageQuery{})
	})
}

func listWebhooks(conn *connection) idLister[animalstore.Webhook] {
	return listOver(conn, func(ctx context.Context, c *client.Client, _ string) iter.Seq2[animalstore.Webhook, error] {
		return c.ListWebhooks(ctx, client.PageQuery{})
	})
}

// listKeys lists the keys of the server or the database that the flags name.
func (at *keyLocation) listKeys(ctx context.Context, cmd *cobra.Command, typed string) iter.Seq2[animalstore.Key, error] {
	return func(yield func(animalstore.Key, error) bool) {
		onServer, err := at.onServer(cmd)
		if err != nil {
			return
		}
		if onServer {
			listOver(&at.server, func(ctx context.Context, c *client.Client, _ string) iter.Seq2[animalstore.Key, error] {
				return keyadmin.Server{Client: c}.List(ctx, maxPage)
			})(ctx, cmd, typed)(yield)
			return
		}
		if store, err := at.database.open(ctx, sqlite.Options{MustExist: true}); err == nil {
			defer store.Close()
			keyadmin.Database{Store: store}.List(ctx, maxPage)(yield)
		}
	}
}
