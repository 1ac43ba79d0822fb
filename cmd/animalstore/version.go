package main

import (
	"fmt"
	"runtime"
	"strings"

	"animalstore"
	"animalstore/internal/cli"

	"github.com/spf13/cobra"
)

// commit is set by make, which builds without Go's own stamp of the commit.
var commit = ""

func versionCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  animalstore version\n  animalstore version --json",
		Args:    cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if p := newPrinter(cmd); p.JSON {
				return p.PrintJSON(map[string]string{"version": versionString(), "go": runtime.Version()})
			}
			_, err := fmt.Fprintln(cmd.OutOrStdout(), "animalstore", versionString())
			return err
		},
	}
	jsonFlag(cmd)
	return cmd
}

// versionString is the version of a release. Between releases it includes the commit
// that was built, if make built it: 1.3.0-dev+0123456789ab.
func versionString() string {
	v := animalstore.Version()
	if commit == "" || !strings.HasSuffix(v, "-dev") {
		return v
	}
	return v + "+" + commit
}
