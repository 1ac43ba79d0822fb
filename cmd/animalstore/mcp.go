package main

import (
	"fmt"
	"io"
	"log/slog"

	"animalstore/internal/api"
	"animalstore/internal/assistant"
	"animalstore/internal/cli"

	"github.com/spf13/cobra"
)

func mcpCommand() *cobra.Command {
	var conn connection
	cmd := &cobra.Command{
		Use:   "mcp",
		Short: "Let an assistant on this machine use a server",
		Long: `Serve tools for an assistant on standard input and output, over the Model
Context Protocol: it can find, add and change pets, place and change orders, and
more. The assistant starts this command itself. Assistants that can call a
server over HTTP don't need it: they use /mcp at its address.

Each call of a tool is one or two requests to the server at --url. Set the API
key in ` + keyVariable + `: its permissions decide what the assistant can do,
and tools that it may not use aren't listed. Messages go to standard error.`,
		Example: `  animalstore mcp
  animalstore mcp --url https://pets.example`,
		Args: cli.NoArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return conn.do(cmd, func(s invocation) error { return serveTools(cmd, s) })
		},
	}
	conn.register(cmd, cmd.Flags())
	return cmd
}

// serveTools serves the assistant that started this command until it closes standard
// input. It first finds out what the key may do, and fails if the key doesn't work,
// because the assistant may not show why its calls fail.
func serveTools(cmd *cobra.Command, s invocation) error {
	limits, err := s.GetLimits(cmd.Context())
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil))
	caller := &assistant.Caller{API: s.Client, Allowed: api.MayCall(limits.Permissions)}
	err = assistant.New(versionString(), log).Serve(cmd.Context(), io.NopCloser(cmd.InOrStdin()), standardOutput{cmd.OutOrStdout()}, caller)
	if cmd.Context().Err() != nil {
		return nil // stopped
	}
	if err != nil {
		// Not wrapped: an end in the middle of a message isn't the server's.
		return fmt.Errorf("can't talk to the assistant: %v", err)
	}
	return nil
}

// standardOutput stays open: the process closes it.
type standardOutput struct{ io.Writer }

func (standardOutput) Close() error { return nil }
