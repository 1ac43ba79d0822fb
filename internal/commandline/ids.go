package commandline

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

const (
	completionTimeout = time.Second // a person is typing
	maxOffered        = 100
)

// Lister lists what the ids of a completion are chosen from, without printing.
type Lister[T any] func(ctx context.Context, cmd *cobra.Command, typed string) iter.Seq2[T, error]

// CompleteIDs offers the ids of a resource, with a description of each. What can't be
// read in time is left out, silently. Ids in the arguments are not offered again.
func CompleteIDs[T any](id, describe func(T) string, list Lister[T]) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(context.Background(), completionTimeout)
		defer cancel()
		var offered []string
		if ReadEnvironment(cmd) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		for entry, err := range list(ctx, cmd, typed) {
			if err != nil || len(offered) == maxOffered {
				break
			}
			id := id(entry)
			if strings.HasPrefix(id, typed) && !slices.Contains(args, id) {
				offered = append(offered, id+"\t"+terminal.Visible(describe(entry)))
			}
		}
		return offered, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

// CompleteFirst completes the first argument only.
func CompleteFirst(complete cobra.CompletionFunc) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(cmd, args, typed)
	}
}
