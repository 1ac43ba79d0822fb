package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestMCP serves an assistant on standard input and output, from a server with and without
// /mcp. Nothing else is printed.
func TestMCP(t *testing.T) {
	t.Parallel()
	for _, door := range []string{"--mcp=true", "--mcp=false"} {
		server := mustStart(t, t.TempDir(), door)
		if door == "--mcp=true" {
			server.key = server.mustRun(t, "keys", "create", "--name", "assistant", "--permissions", "read")
		}
		var stderr bytes.Buffer
		cmd := server.command("mcp")
		cmd.Stderr = &stderr
		assistant, err := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil).Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
		if err != nil {
			t.Fatal(err)
		}
		list, err := assistant.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := map[string]int{"--mcp=true": 7, "--mcp=false": 12}[door]; len(list.Tools) != want {
			t.Errorf("serve %s: got %d tools, want %d", door, len(list.Tools), want)
		}
		result, err := assistant.CallTool(t.Context(), &mcp.CallToolParams{Name: "add_pet", Arguments: json.RawMessage(`{"name":"Rex","categoryId":7}`)})
		if err != nil {
			t.Fatal(err)
		}
		text := result.Content[0].(*mcp.TextContent).Text
		want := map[string]string{"--mcp=true": `"insufficient_permission"`, "--mcp=false": `"name":"Rex"`}[door]
		if !strings.Contains(text, want) {
			t.Errorf("serve %s: add_pet: got %s, want %s", door, text, want)
		}
		server.kill()
		result, err = assistant.CallTool(t.Context(), &mcp.CallToolParams{Name: "inventory"})
		if err != nil || !result.IsError {
			t.Errorf("serve %s: inventory without a server: got %v, %v, want the error of the tool", door, result, err)
		}
		if err := assistant.Close(); err != nil {
			t.Errorf("serve %s: end: %v", door, err)
		}
		if stderr.Len() > 0 {
			t.Errorf("serve %s: got %q on standard error, want nothing", door, stderr.String())
		}
	}
}

// TestMCPInput: input that isn't a message ends the command, which doesn't blame the server.
func TestMCPInput(t *testing.T) {
	t.Parallel()
	server := mustStart(t, t.TempDir())
	for _, input := range []string{"help\n", `{"jsonrpc":"2.0","id":1,`} {
		cmd := server.command("mcp")
		cmd.Stdin = strings.NewReader(input)
		out, err := cmd.CombinedOutput()
		if err == nil || cmd.ProcessState.ExitCode() != exitError || !strings.Contains(string(out), "assistant") || strings.Contains(string(out), server.url) {
			t.Errorf("%q: got %v, %s, want an error about the assistant", input, err, out)
		}
	}
}
