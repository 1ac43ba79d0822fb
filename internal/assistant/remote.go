package assistant

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
)

// Listed asks a server which tools it lists for a key, and returns whether a tool is one of
// them. A server without /mcp lists none, but its API can still be called, so then it is
// all. baseURL is that of the API.
func Listed(ctx context.Context, hc *http.Client, baseURL, key string) (func(tool string) bool, error) {
	const request = `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`
	url := strings.TrimSuffix(baseURL, "/v1") + "/mcp"
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(request))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+key)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	res, err := hc.Do(r)
	if err != nil {
		return nil, fmt.Errorf("list the tools: %w", err)
	}
	defer res.Body.Close()
	if res.StatusCode == http.StatusNotFound {
		return func(string) bool { return true }, nil
	}
	var response struct {
		Result struct{ Tools []struct{ Name string } }
	}
	body, err := io.ReadAll(io.LimitReader(res.Body, maxMessage))
	if err == nil {
		err = json.Unmarshal(body, &response)
	}
	if err != nil || res.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("list the tools: %s responded with status %d, not with a list", url, res.StatusCode)
	}
	listed := map[string]bool{}
	for _, tool := range response.Result.Tools {
		listed[tool.Name] = true
	}
	return func(tool string) bool { return listed[tool] }, nil
}
