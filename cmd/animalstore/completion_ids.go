package main

import (
	"context"
	"io"
	"iter"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/cli"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/server"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

const (
	completionTimeout = time.Second // a person is typing
	maxOffered        = 100
)

// completeFrom offers the ids of a resource, with a description of each. It silently
// leaves out what can't be read in time, and ids that are in the arguments already.
func (r resource[T]) completeFrom(list func(ctx context.Context, cmd *cobra.Command, typed string) iter.Seq2[T, error]) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
		defer cancel()
		if cli.ReadEnvironment(cmd) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		var offered []string
		for entry, err := range list(ctx, cmd, typed) {
			if err != nil || len(offered) == maxOffered {
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

// completeIDs offers the ids of a server.
func (r resource[T]) completeIDs(conn *connection) cobra.CompletionFunc {
	return r.completeFrom(listOver(conn, r.list))
}

// completeOneID is for a command with one id as its argument.
func (r resource[T]) completeOneID(conn *connection) cobra.CompletionFunc {
	return cli.CompleteFirst(r.completeIDs(conn))
}

// lister lists what completion chooses ids from. typed is the beginning of the id.
type lister[T any] func(ctx context.Context, c *client.Client, typed string) iter.Seq2[T, error]

// listAll turns a method of the client that lists a resource into a lister.
func listAll[T, Q any](list func(*client.Client, context.Context, Q, ...client.CallOption) iter.Seq2[T, error]) lister[T] {
	return func(ctx context.Context, c *client.Client, _ string) iter.Seq2[T, error] {
		var all Q
		return list(c, ctx, all)
	}
}

// listOver lists from a server without waiting, or nothing if it can't be called.
func listOver[T any](conn *connection, list lister[T]) func(context.Context, *cobra.Command, string) iter.Seq2[T, error] {
	return func(ctx context.Context, _ *cobra.Command, typed string) iter.Seq2[T, error] {
		calls, err := conn.newClient(os.Getenv(keyVariable), client.WithMaxWait(0), client.WithMaxAttempts(1))
		if err != nil {
			return func(func(T, error) bool) {}
		}
		return list(ctx, calls, typed)
	}
}

// listPetsBeginning lists the pets whose ids begin with these digits, or all if there are
// none. A large store has many more pets than one page.
func listPetsBeginning(ctx context.Context, c *client.Client, digits string) iter.Seq2[animalstore.Pet, error] {
	return c.ListPets(ctx, client.PetQuery{IDs: idsBeginning(digits)})
}

// completeNames offers the names of pets. A shell only takes what begins with the typed
// text, so a name that begins with it in another case is offered in that case.
func completeNames(conn *connection) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
		defer cancel()
		if cli.ReadEnvironment(cmd) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		list := listOver(conn, func(ctx context.Context, c *client.Client, typed string) iter.Seq2[animalstore.Pet, error] {
			return c.ListPets(ctx, client.PetQuery{Name: typed})
		})
		var offered []string
		read := 0
		for pet, err := range list(ctx, cmd, typed) {
			if err != nil || read == maxPage {
				break
			}
			read++
			name, ok := withPrefix(pet.Name, typed)
			if ok && terminal.Visible(name) == name && !slices.Contains(offered, name) {
				offered = append(offered, name)
			}
		}
		return offered, cobra.ShellCompDirectiveNoFileComp
	}
}

// withPrefix returns a name that begins with prefix in any case, beginning exactly with it.
func withPrefix(name, prefix string) (string, bool) {
	end := 0
	for range utf8.RuneCountInString(prefix) {
		_, size := utf8.DecodeRuneInString(name[end:])
		end += size
	}
	return prefix + name[end:], strings.EqualFold(name[:end], prefix)
}

// idsBeginning returns the lowest ids that begin with these digits, as many as a request
// may ask for; nil, for all ids, if there are no digits.
func idsBeginning(digits string) []int64 {
	first, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || first < 1 {
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
		if have, known, err := server.DatabaseVersions(ctx, at.database.url); err != nil || have != known {
			return // don't update a store because someone pressed a key
		}
		if store, err := at.database.open(ctx, sqlite.Options{MustExist: true}, io.Discard); err == nil {
			defer store.Close()
			databaseKeys{store}.List(ctx, maxPage)(yield)
		}
	}
}
