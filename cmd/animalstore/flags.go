package main

import (
	"errors"

	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

// jsonFlag adds --json, which newPrinter reads.
func jsonFlag(cmd *cobra.Command) { cmd.Flags().Bool("json", false, "print JSON") }

// newPrinter returns a printer for the results of a command.
func newPrinter(cmd *cobra.Command) *terminal.Printer {
	p := terminal.NewPrinter(cmd.OutOrStdout(), cmd.ErrOrStderr())
	p.JSON = cmd.Flag("json") != nil && cmd.Flag("json").Value.String() == "true"
	p.KeepColumns = cmd.Flag("columns") != nil && cmd.Flag("columns").Changed
	return p
}

// yesFlag adds --yes to a command that can't be undone.
func yesFlag(cmd *cobra.Command) {
	cmd.Flags().BoolP("yes", "y", false, "don't ask for confirmation on a terminal")
}

// needsConfirmation reports whether a command needs confirmation: on a terminal, unless
// --yes is given.
func needsConfirmation(cmd *cobra.Command) bool {
	yes, _ := cmd.Flags().GetBool("yes")
	return !yes && terminal.Interactive(cmd.InOrStdin(), cmd.ErrOrStderr())
}

// requireConfirmation returns an error if the command needs confirmation and doesn't get it.
func requireConfirmation(cmd *cobra.Command, question string) error {
	if !needsConfirmation(cmd) {
		return nil
	}
	agreed, err := terminal.Confirm(cmd.Context(), cmd.InOrStdin(), cmd.ErrOrStderr(), question)
	if err == nil && !agreed {
		err = errors.New("nothing was changed")
	}
	return err
}
