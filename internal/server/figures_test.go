package server_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
)

// TestWebhookFigures: webhooks are counted by their state.
func TestWebhookFigures(t *testing.T) {
	response, err := http.Get(opsURL(t, "127.0.0.1:0") + "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`animalstore_webhooks{state="active"} 0`, `animalstore_webhooks{state="paused"} 0`, `animalstore_webhooks{state="disabled"} 0`} {
		if !strings.Contains(string(body), "\n"+want+"\n") {
			t.Errorf("got no %s in the metrics", want)
		}
	}
}
