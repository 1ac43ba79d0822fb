package main

import (
	"errors"

	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

// registerYes adds --yes to a command that can't be undone.
func registerYes(cmd *cobra.Command) {
	cmd.Flags().BoolP("yes", "y", false, "don't ask for confirmation on a terminal")
}

// asks reports whether a command has to be confirmed: on a terminal, unless --yes is
// given.
func asks(cmd *cobra.Command) bool {
	yes, _ := cmd.Flags().GetBool("yes")
	return !yes && terminal.Interactive(cmd.InOrStdin(), cmd.ErrOrStderr())
}

// confirm returns an error unless the person agrees.
func confirm(cmd *cobra.Command, question string) error {
	agreed, err := terminal.Confirm(cmd.Context(), cmd.InOrStdin(), cmd.ErrOrStderr(), question)
	if err == nil && !agreed {
		err = cliError{errors.New("not confirmed"), "nothing was changed", exitError}
	}
	return err
}
