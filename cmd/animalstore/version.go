package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
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
// that was built, if that is known: 1.3.0-dev+0123456789ab.
func versionString() string {
	info, _ := debug.ReadBuildInfo()
	return versionOf(animalstore.Version(), commit, info)
}

func versionOf(v, commit string, info *debug.BuildInfo) string {
	built := cmp.Or(commit, stampedCommit(info))
	if built == "" || !strings.HasSuffix(v, "-dev") {
		return v
	}
	return v + "+" + built
}

// stampedCommit is the commit as go build and go install record it, "" if they don't.
func stampedCommit(info *debug.BuildInfo) string {
	if info == nil {
		return ""
	}
	revision, modified := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = ".modified"
		}
	}
	if revision == "" {
		return ""
	}
	return revision + modified
}
