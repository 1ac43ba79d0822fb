package assistant

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"

	"animalstore"
	"animalstore/internal/inprocess"
	"animalstore/internal/strictjson"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// checkMessage returns the method of a message, "" for a response. The SDK isn't strict:
// it takes the last of duplicate names, skips text after the message, rounds ids, and
// decodes a message several times.
func checkMessage(body []byte) (method string, invalid *jsonrpc.Error) {
	if bytes.HasPrefix(bytes.TrimLeft(body, " \t\r\n"), []byte("[")) {
		return "", invalidRequest("batches are not supported: send each message separately")
	}
	method, err := strictjson.CheckMessage(body)
	if refused, ok := errors.AsType[*animalstore.Error](err); ok {
		invalid = invalidRequest(refused.Message)
		if refused.Code == animalstore.MalformedJSON {
			invalid.Code = jsonrpc.CodeParseError
		}
	}
	return method, invalid
}

func invalidRequest(message string) *jsonrpc.Error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidRequest, Message: message}
}

// errorResponse is an error of JSON-RPC.
type errorResponse struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"` // nil: null
	Error   *jsonrpc.Error  `json:"error"`
}

// refuse writes the response to a message that wasn't handled.
func refuse(w http.ResponseWriter, status int, id json.RawMessage, e *jsonrpc.Error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	w.Write(encode(errorResponse{"2.0", id, e}))
}

// explanations replace the messages of the SDK's errors, which repeat values of the request.
var explanations = map[int64]string{
	jsonrpc.CodeInvalidRequest:         "the request is not valid",
	jsonrpc.CodeMethodNotFound:         "there is no such method",
	jsonrpc.CodeInvalidParams:          "the params or their _meta are not valid, or there is no such tool: tools/list describes all tools",
	jsonrpc.CodeInternalError:          "internal error",
	mcp.CodeHeaderMismatch:             "Mcp-Protocol-Version, Mcp-Method and Mcp-Name must be there and match the message",
	mcp.CodeUnsupportedProtocolVersion: "unsupported protocol version",
}

// explained returns an error with a message of ours.
func explained(code int64) *jsonrpc.Error {
	if explanations[code] == "" { // the SDK's own errors have code 0
		code = jsonrpc.CodeInvalidRequest
	}
	return &jsonrpc.Error{Code: code, Message: explanations[code]}
}

// explain returns a failed response of the SDK with its error as JSON, and without values
// of the request. It returns others as they are.
func explain(res *http.Response) *http.Response {
	body, err := io.ReadAll(res.Body)
	if err != nil {
		panic(err) // it is in memory
	}
	var failed errorResponse
	mediaType, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch text := strings.TrimSpace(string(body)); {
	case mediaType == "application/json" && json.Unmarshal(body, &failed) == nil && failed.Error != nil:
		sent := failed.Error
		failed.Error = explained(sent.Code)
		if sent.Code == mcp.CodeUnsupportedProtocolVersion {
			failed.Error.Data = sent.Data // the versions
		}
	case mediaType != "text/plain":
		res.Body = io.NopCloser(bytes.NewReader(body))
		return res
	case strings.HasPrefix(text, "JSON RPC not handled"):
		failed.Error = explained(jsonrpc.CodeMethodNotFound)
	case strings.HasPrefix(text, "malformed payload"):
		failed.Error = explained(jsonrpc.CodeInvalidRequest)
	default: // says what is wrong with the headers or the id
		failed.Error = invalidRequest(text)
	}
	w := inprocess.NewRecorder(nil)
	refuse(w, res.StatusCode, failed.ID, failed.Error)
	return w.Response(res.Request)
}
