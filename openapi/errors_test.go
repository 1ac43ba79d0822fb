package openapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// findStrayErrors expects every error response to have the body Error, to list
// its codes under x-codes, and to use only these in its examples. Clients see any
// string as a code, so that codes can be added. Two codes belong to no operation.
func findStrayErrors(doc *openapi3.T) (wrong []string) {
	codes := []any{"route_not_found", "method_not_allowed"}
	for _, code := range codes {
		if !strings.Contains(doc.Info.Description, "`"+code.(string)+"`") {
			wrong = append(wrong, fmt.Sprintf("info.description: got no mention of %s, want one", code))
		}
	}
	schema := doc.Components.Schemas["ErrorCode"].Value
	for name, op := range operations(doc) {
		for _, status := range slices.Sorted(maps.Keys(op.Responses.Map())) {
			if status < "400" {
				continue
			}
			where, response := name+": "+status, op.Responses.Value(status).Value
			own, _ := response.Extensions["x-codes"].([]any)
			if len(own) == 0 {
				wrong = append(wrong, where+": got no x-codes, want them")
			}
			for _, code := range own {
				if !strings.Contains(schema.Description, fmt.Sprintf("| `%v` | %s |", code, status)) {
					wrong = append(wrong, fmt.Sprintf("code %v: got no line for status %s in the table of codes, want one", code, status))
				}
			}
			codes = append(codes, own...)
			media := response.Content["application/json"]
			if media == nil || media.Schema.Ref != "#/components/schemas/Error" {
				wrong = append(wrong, where+": want Error as its body")
				continue
			}
			for _, value := range values(media.Example, media.Examples) {
				example, _ := value.(map[string]any)
				if !slices.Contains(own, example["code"]) {
					wrong = append(wrong, fmt.Sprintf("%s: example with code %v, want one of %v", where, example["code"], own))
				}
				if fmt.Sprint(example["status"]) != status {
					wrong = append(wrong, fmt.Sprintf("%s: example with status %v", where, example["status"]))
				}
			}
		}
	}
	return append(wrong, compareCodes(schema.Extensions["x-extensible-enum"], codes)...)
}

// compareCodes expects the list of all codes to be those of the responses.
func compareCodes(listed any, codes []any) (wrong []string) {
	all, _ := listed.([]any)
	for _, code := range all {
		if !slices.Contains(codes, code) {
			wrong = append(wrong, fmt.Sprintf("code %v: got no response with it, want one", code))
		}
	}
	for _, code := range codes {
		if !slices.Contains(all, code) {
			wrong = append(wrong, fmt.Sprintf("code %v: not in ErrorCode, want it there", code))
		}
	}
	return wrong
}
