//go:build man

// The command "man" isn't part of releases: building one runs it.

package main

import (
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

func init() { generators = append(generators, manCommand) }

// manCommand writes the man pages to a directory.
func manCommand() *cobra.Command {
	return &cobra.Command{
		Use:    "man DIRECTORY VERSION DATE",
		Hidden: true,
		Args:   cobra.ExactArgs(3),
		RunE: func(cmd *cobra.Command, args []string) error {
			date, err := time.Parse(time.RFC3339, args[2])
			if err != nil {
				return err
			}
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			cmd.Root().DisableAutoGenTag = true
			return doc.GenManTree(cmd.Root(), &doc.GenManHeader{
				Section: "1", Date: &date, Source: "animalstore " + args[1], Manual: "animalstore",
			}, args[0])
		},
	}
}
