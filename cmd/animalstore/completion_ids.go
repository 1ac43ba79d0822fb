package main

import (
	"context"
	"iter"
	"os"
	"slices"
	"strings"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/keyadmin"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

// completionTimeout is how long completion waits for a server: a person is typing.
const completionTimeout = time.Second

// idLister lists what the ids of a completion are chosen from, without printing.
type idLister[T any] func(ctx context.Context, cmd *cobra.Command, typed string) iter.Seq2[T, error]

// completeIDs offers the ids of a resource, with a description of each. What can't be
// read in time is left out, silently. Ids that args contains are not offered again.
func (r resource[T]) completeIDs(list idLister[T]) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
		defer cancel()
		var offered []string
		if readEnvironment(cmd) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		for entry, err := range list(ctx, cmd, typed) {
			if err != nil || len(offered) == maxPage {
				break
			}
			id := r.columns[0].Text(entry)
			if strings.HasPrefix(id, typed) && !slices.Contains(args, id) {
				offered = append(offered, id+"\t"+terminal.Visible(r.describe(entry)))
			}
		}
		return offered, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// completeOneID is for a command with one id as its argument.
func (r resource[T]) completeOneID(list idLister[T]) cobra.CompletionFunc {
	complete := r.completeIDs(list)
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, typed)
	}
}

// quietClient is a client that neither waits nor retries; nil if there can't be one.
func (c *connection) quietClient() *client.Client {
	key := os.Getenv(keyVariable)
	if checkKey(key) != nil {
		return nil
	}
	options, err := c.options(nil)
	if err != nil {
		return nil
	}
	calls, err := client.New(c.address(), key, append(options, client.WithMaxWait(0), client.WithMaxAttempts(1))...)
	if err != nil {
		return nil
	}
	return calls
}

// listOver lists from a server, or nothing if there can't be a client.
func listOver[T any](conn *connection, list func(ctx context.Context, c *client.Client, typed string) iter.Seq2[T, error]) idLister[T] {
	return func(ctx context.Context, _ *cobra.Command, typed string) iter.Seq2[T, error] {
		if c := conn.quietClient(); c != nil {
			return list(ctx, c, typed)
		}
		return func(func(T, error) bool) {}
	}
}

func listPets(conn *connection) idLister[animalstore.Pet] {
	return listOver(conn, func(ctx context.Context, c *client.Client, typed string) iter.Seq2[animalstore.Pet, error] {
		return c.ListPets(ctx, client.PetQuery{IDs: idsThatBegin(typed)})
	})
}

// idsThatBegin are the lowest ids that begin with these digits, as many as a request
// may ask for; nil, for all ids, if there are no digits. A large store has many more
// pets than one page.
func idsThatBegin(digits string) []int64 {
	first, ok := parseInteger(digits)
	if !ok || first < 1 {
		return nil
	}
	var ids []int64
	for span := int64(1); len(ids) < maxPage && first < 1<<50; span, first = span*10, first*10 {
		for i := int64(0); i < span && len(ids) < maxPage; i++ {
			ids = append(ids, first+i)
		}
	}
	return ids
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
func (at *keyLocation) listKeys(ctx context.Context, cmd *cobra.Command, _ string) iter.Seq2[animalstore.Key, error] {
	return func(yield func(animalstore.Key, error) bool) {
		onServer, err := at.onServer(cmd)
		if err != nil {
			return
		}
		var store keyadmin.Keys
		if onServer {
			c := at.server.quietClient()
			if c == nil {
				return
			}
			store = keyadmin.Server{Client: c}
		} else {
			opened, err := at.database.open(ctx, sqlite.Options{MustExist: true})
			if err != nil {
				return
			}
			defer opened.Close()
			store = keyadmin.Database{Store: opened}
		}
		store.List(ctx, maxPage)(yield)
	}
}
