package openapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

var (
	// showSecrets are the operations whose responses contain a secret.
	showSecrets = []string{"createKey", "createWebhook", "rotateKey", "rotateWebhook"}
	// unstored are the operations whose responses must not be cached.
	unstored = append([]string{"getKeyUsage", "getLimits", "getStatus", "getUsage"}, showSecrets...)
)

// findMissingHeaders checks that the headers callers rely on are marked as
// required, so that a server that leaves one out fails its contract tests.
func findMissingHeaders(doc *openapi3.T) (wrong []string) {
	for name, op := range operations(doc) {
		for status, response := range op.Responses.Map() {
			for _, header := range requiredHeaders(op, status) {
				if h := response.Value.Headers[header]; h == nil || !h.Value.Required {
					wrong = append(wrong, fmt.Sprintf("%s: %s: got no required %s, want one", name, status, header))
				}
			}
			replayed := response.Value.Headers["Idempotent-Replayed"]
			if want := status == "201" && op.Responses.Value("422") != nil; (replayed != nil) != want {
				wrong = append(wrong, fmt.Sprintf("%s: %s: Idempotent-Replayed: got %t, want %t", name, status, !want, want))
			}
		}
	}
	return wrong
}

func requiredHeaders(op *openapi3.Operation, status string) []string {
	want := []string{"X-Request-Id", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset"}
	add := func(when bool, headers ...string) {
		if when {
			want = append(want, headers...)
		}
	}
	done := status == "200" || status == "201" || status == "304"
	add(status == "401", "WWW-Authenticate")
	add(status == "429" || status == "503", "Retry-After")
	add(status == "201" && op.OperationID != "createPetBatch", "Location") // many have no location
	add(status == "415" && strings.HasPrefix(op.OperationID, "update"), "Accept-Patch")
	// Links to events may end: read backwards, there is no first page to lead to.
	add(done && strings.HasPrefix(op.OperationID, "list") && op.OperationID != "listEvents", "Link")
	add(done && !slices.Contains(showSecrets, op.OperationID), "ETag")
	add(done && slices.Contains(unstored, op.OperationID), "Cache-Control")
	add(done && slices.Contains(images, op.OperationID), "Cache-Control", "Content-Disposition", "Content-Security-Policy")
	// These statuses can occur before the request reaches its operation.
	past := !slices.Contains([]string{"401", "403", "429", "503"}, status)
	add(op.OperationID == "getPet" && past, "Deprecation", "Sunset", "Link")
	return want
}

// images are the operations that respond with an image.
var images = []string{"getImage", "getThumbnail"}

// findMisplacedBodies expects a JSON body on every response except 204, 304 and images, a
// secret only where one is created, and every patch as both plain JSON and a
// merge patch. Only the first is under content, because openapi-python-client takes a body
// with two media types for an optional one.
func findMisplacedBodies(doc *openapi3.T) (wrong []string) {
	for name, op := range operations(doc) {
		for status, response := range op.Responses.Map() {
			content := response.Value.Content
			want := status != "204" && status != "304" && (status != "200" || !slices.Contains(images, op.OperationID))
			if (content["application/json"] != nil) != want || len(content) > 1 {
				wrong = append(wrong, fmt.Sprintf("%s: %s: got %d media types, want JSON: %t", name, status, len(content), want))
			}
			if media := content["application/json"]; media != nil && media.Schema.Value.Properties["secret"] != nil && !slices.Contains(showSecrets, op.OperationID) {
				wrong = append(wrong, fmt.Sprintf("%s: %s: got a secret, want none", name, status))
			}
		}
		if !strings.HasPrefix(name, http.MethodPatch) {
			continue
		}
		body := op.RequestBody.Value
		if also := fmt.Sprint(body.Extensions["x-also-accepts"]); body.Content["application/json"] == nil || also != "[application/merge-patch+json]" {
			wrong = append(wrong, name+": want application/json, and application/merge-patch+json in x-also-accepts")
		}
	}
	return wrong
}

// findLooseConditions expects a conditional request header exactly where the
// operation has the status that only this header can cause, and If-None-Match on
// every PUT.
func findLooseConditions(doc *openapi3.T) (wrong []string) {
	for name, op := range operations(doc) {
		for header, status := range map[string]string{"If-Match": "412", "If-None-Match": "304", "Idempotency-Key": "422"} {
			got := op.Parameters.GetByInAndName("header", header) != nil
			want := op.Responses.Value(status) != nil
			if header == "If-None-Match" && strings.HasPrefix(name, http.MethodPut) {
				want = true // it causes 412, like If-Match
			}
			if got != want {
				wrong = append(wrong, fmt.Sprintf("%s: header %s: got %t, want %t, as for status %s", name, header, got, want, status))
			}
		}
	}
	return wrong
}
