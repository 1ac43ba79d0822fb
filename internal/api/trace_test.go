package api

import (
	"net/http"
	"testing"
)

// TestTraceID has the valid and invalid forms of the W3C recommendation.
func TestTraceID(t *testing.T) {
	const id = "0af7651916cd43dd8448eb211c80319c"
	for header, want := range map[string]string{
		"00-" + id + "-b7ad6b7169203331-01":                       id,
		"00-" + id + "-b7ad6b7169203331-00":                       id,
		"cc-" + id + "-b7ad6b7169203331-01":                       id,
		"cc-" + id + "-b7ad6b7169203331-01-what-comes":            id,
		"00-" + id + "-b7ad6b7169203331-01-more":                  "",
		"cc-" + id + "-b7ad6b7169203331-01.more":                  "",
		"ff-" + id + "-b7ad6b7169203331-01":                       "",
		"00-00000000000000000000000000000000-b7ad6b7169203331-01": "",
		"00-" + id + "-0000000000000000-01":                       "",
		"00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01": "",
		"00-" + id + "-b7ad6b7169203331-0g":                       "",
		"00-" + id + "_b7ad6b7169203331-01":                       "",
		"00_" + id + "-b7ad6b7169203331-01":                       "",
		"00-" + id + "-b7ad6b7169203331_01":                       "",
		"00-" + id + "-b7ad6b7169203331":                          "",
		"":                                                        "",
	} {
		if got := traceID(&http.Request{Header: http.Header{"Traceparent": {header}}}); got != want {
			t.Errorf("%q: got %q, want %q", header, got, want)
		}
	}
	valid := "00-" + id + "-b7ad6b7169203331-01"
	if got := traceID(&http.Request{Header: http.Header{"Traceparent": {valid, valid}}}); got != "" {
		t.Errorf("given twice: got %q, want none", got)
	}
}
