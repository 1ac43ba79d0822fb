package main

import (
	"runtime/debug"
	"testing"
)

func TestVersion(t *testing.T) {
	const revision = "0123456789abcdef0123456789abcdef01234567"
	stamp := func(modified string) *debug.BuildInfo {
		return &debug.BuildInfo{Settings: []debug.BuildSetting{{Key: "vcs.revision", Value: revision}, {Key: "vcs.modified", Value: modified}}}
	}
	for _, test := range []struct {
		version, commit string
		info            *debug.BuildInfo
		want            string
	}{
		{"1.2.0", "fedcba", stamp("true"), "1.2.0"},
		{"1.3.0-dev", "fedcba", stamp("true"), "1.3.0-dev+fedcba"},
		{"1.3.0-dev", "", stamp("false"), "1.3.0-dev+0123456789ab"},
		{"1.3.0-dev", "", stamp("true"), "1.3.0-dev+0123456789ab.modified"},
		{"1.3.0-dev", "", &debug.BuildInfo{}, "1.3.0-dev"},
		{"1.3.0-dev", "", nil, "1.3.0-dev"},
	} {
		if got := versionOf(test.version, test.commit, test.info); got != test.want {
			t.Errorf("version %s, commit %q, stamp %v: got %s, want %s", test.version, test.commit, test.info, got, test.want)
		}
	}
}
