package commandline

import (
	"errors"

	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

// RegisterJSON adds --json, which [NewPrinter] reads.
func RegisterJSON(cmd *cobra.Command) { cmd.Flags().Bool("json", false, "print JSON") }

// NewPrinter returns a printer for the results of a command.
func NewPrinter(cmd *cobra.Command) *terminal.Printer {
	asJSON := cmd.Flag("json") != nil && cmd.Flag("json").Value.String() == "true"
	return terminal.NewPrinter(cmd.OutOrStdout(), cmd.ErrOrStderr(), asJSON)
}

// RegisterYes adds --yes to a command that can't be undone.
func RegisterYes(cmd *cobra.Command) {
	cmd.Flags().BoolP("yes", "y", false, "don't ask for confirmation on a terminal")
}

// Asks reports whether a command has to be confirmed: on a terminal, unless --yes is
// given.
func Asks(cmd *cobra.Command) bool {
	yes, _ := cmd.Flags().GetBool("yes")
	return !yes && terminal.Interactive(cmd.InOrStdin(), cmd.ErrOrStderr())
}

// Confirm returns an error if the command has to be confirmed and the person doesn't
// agree.
func Confirm(cmd *cobra.Command, question string) error {
	if !Asks(cmd) {
		return nil
	}
	agreed, err := terminal.Confirm(cmd.Context(), cmd.InOrStdin(), cmd.ErrOrStderr(), question)
	if err == nil && !agreed {
		err = errors.New("nothing was changed")
	}
	return err
}
