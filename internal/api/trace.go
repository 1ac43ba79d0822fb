package api

import (
	"net/http"
	"strings"
)

// traceID returns the id of the trace that a request belongs to, from its traceparent
// header (W3C Trace Context), or "" if it has no valid one.
func traceID(r *http.Request) string {
	values := r.Header["Traceparent"]
	if len(values) != 1 {
		return ""
	}
	// version "-" trace-id "-" parent-id "-" flags; later versions may append fields.
	v := values[0]
	if len(v) < 55 || v[2] != '-' || v[35] != '-' || v[52] != '-' {
		return ""
	}
	version, trace, parent, flags := v[:2], v[3:35], v[36:52], v[53:55]
	switch {
	case !lowerHex(version) || !lowerHex(trace) || !lowerHex(parent) || !lowerHex(flags):
	case version == "ff" || version == "00" && len(v) != 55 || len(v) > 55 && v[55] != '-':
	case strings.Trim(trace, "0") == "" || strings.Trim(parent, "0") == "":
	default:
		return trace
	}
	return ""
}

func lowerHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }
