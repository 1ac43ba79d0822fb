package assistant

import (
	"errors"
	"math"
	"net/http"
	"strings"

	"animalstore"
	"animalstore/client"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// failure is what a tool returns instead of a result: the error of the API.
type failure struct {
	Code    animalstore.Code `json:"code"`
	Message string           `json:"message"`
	Status  int              `json:"status"`
	// RetryAfter is how many seconds to wait after a 429.
	RetryAfter int64 `json:"retryAfterSeconds,omitempty"`
}

// newFailure returns the failure of a call of a tool with these parameters.
func newFailure(err error, parameters []parameter) failure {
	var (
		refused *client.Error
		limit   *client.RateLimitError
		coded   *animalstore.Error
	)
	f := failure{Code: animalstore.Unavailable, Message: err.Error(), Status: http.StatusServiceUnavailable} // no response
	if errors.As(err, &coded) {
		f = failure{Code: coded.Code, Status: http.StatusBadRequest} // of the arguments
		f.Message = inArguments(coded, parameters)
	}
	if errors.As(err, &refused) {
		f.Status = refused.Status
	}
	if errors.As(err, &limit) {
		f.Status = http.StatusTooManyRequests
		f.RetryAfter = max(1, int64(math.Ceil(limit.RetryAfter.Seconds())))
	}
	if errors.Is(err, client.ErrOutcomeUnknown) {
		f.Message += "; the change may or may not have been made: check before you try again"
	}
	return f
}

// inArguments returns the message of an error of the API in terms of a tool's arguments.
func inArguments(e *animalstore.Error, parameters []parameter) string {
	message := argumentTerms.Replace(e.Message)
	if e.Code != animalstore.InvalidParameter && e.Code != animalstore.InvalidCursor {
		return message
	}
	words := strings.Fields(message)
	for _, p := range parameters {
		for i, word := range words {
			if name := strings.TrimRight(word, ":,"); p.api != "" && name == p.api {
				words[i] = p.name + word[len(name):]
			}
		}
	}
	return strings.Join(words, " ")
}

// argumentTerms replace what assistants don't see of a request and its response.
var argumentTerms = strings.NewReplacer(
	"Idempotency-Key", "idempotencyKey",
	"another body", "other arguments",
	"the same body", "the same arguments",
	"a new key for a new request", "a new one for a new call",
	"the Link header", "nextCursor",
	"continue from the newest event (after=latest)", "leave out before",
	"the path that its Link header has", "the tool that returned it",
)

// result reports the failure to the assistant. It has no structured content, which would
// have to match the schema of a success.
func (f failure) result() *mcp.CallToolResult {
	return &mcp.CallToolResult{IsError: true, Content: []mcp.Content{&mcp.TextContent{Text: string(encode(f))}}}
}

// encode returns the JSON of a value, one of our types, which can always be encoded.
func encode(v any) []byte {
	body, err := animalstore.EncodeJSON(v)
	if err != nil {
		panic(err)
	}
	return body
}
