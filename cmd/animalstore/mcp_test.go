package main

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"animalstore/internal/testenv"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestMCP serves an assistant on standard input and output, with a key that may only read and
// with one that may do everything, from a server with and without /mcp. Nothing else is
// printed.
func TestMCP(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		door, permissions string
		tools             int
		added             string // what add_pet returns
	}{
		{"--mcp=true", "read", 7, `"insufficient_permission"`},
		{"--mcp=false", "read", 7, `"insufficient_permission"`},
		{"--mcp=false", "read,write", 14, `"name":"Rex"`},
	} {
		server := mustStart(t, t.TempDir(), test.door)
		server.key = server.mustRun(t, "keys", "create", "--name", "assistant", "--permissions", test.permissions)
		var stderr bytes.Buffer
		cmd := server.command("mcp")
		cmd.Stderr = &stderr
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		assistant, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd}, nil)
		if err != nil {
			t.Fatal(err)
		}
		list, err := assistant.ListTools(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		if len(list.Tools) != test.tools {
			t.Errorf("%+v: got %d tools", test, len(list.Tools))
		}
		result, err := assistant.CallTool(t.Context(), &mcp.CallToolParams{Name: "add_pet", Arguments: json.RawMessage(`{"name":"Rex","categoryId":7}`)})
		if err != nil {
			t.Fatal(err)
		}
		if text := result.Content[0].(*mcp.TextContent).Text; !strings.Contains(text, test.added) {
			t.Errorf("%+v: add_pet: got %s", test, text)
		}
		server.kill()
		address, err := url.Parse(server.url)
		if err != nil {
			t.Fatal(err)
		}
		port, err := strconv.Atoi(address.Port())
		if err != nil {
			t.Fatal(err)
		}
		testenv.RefuseAt(t, port)
		result, err = assistant.CallTool(t.Context(), &mcp.CallToolParams{Name: "inventory"})
		if err != nil || !result.IsError {
			t.Errorf("%+v: inventory without a server: got %v, %v, want the error of the tool", test, result, err)
		}
		if err := assistant.Close(); err != nil {
			t.Errorf("%+v: end: %v", test, err)
		}
		if stderr.Len() > 0 {
			t.Errorf("%+v: got %q on standard error, want nothing", test, stderr.String())
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
