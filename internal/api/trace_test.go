package api

import (
	"net/http"
	"testing"
)

func TestTraceID(t *testing.T) {
	const id = "0af7651916cd43dd8448eb211c80319c"
	for header, want := range map[string]string{
		"00-" + id + "-b7ad6b7169203331-01":                       id,
		"cc-" + id + "-b7ad6b7169203331-01-what-comes":            id,
		"00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01": "",
		"00-" + id + "-b7ad6b7169203331":                          "",
		"":                                                        "",
	} {
		if got := traceID(&http.Request{Header: http.Header{"Traceparent": {header}}}); got != want {
			t.Errorf("%q: got %q, want %q", header, got, want)
		}
	}
}
