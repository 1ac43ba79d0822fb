// Package buildinfo says which version of animalstore a program was built from.
package buildinfo

import (
	"cmp"
	"runtime/debug"
	"strings"

	"animalstore"
)

// Version is the version of a release, and between releases also the commit that was
// built, if that is known: 1.3.0-dev+0123456789ab. The commit is "" if the build doesn't
// set it; then Go's own stamp is used.
func Version(commit string) string {
	info, _ := debug.ReadBuildInfo()
	return version(animalstore.Version(), commit, info)
}

func version(v, commit string, info *debug.BuildInfo) string {
	built := cmp.Or(commit, stampedCommit(info))
	if built == "" || !strings.HasSuffix(v, "-dev") {
		return v
	}
	return v + "+" + built
}

// stampedCommit is the commit as go build and go install record it, "" if they don't.
func stampedCommit(info *debug.BuildInfo) string {
	if info == nil {
		return ""
	}
	revision, modified := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			modified = ".modified"
		}
	}
	if revision == "" {
		return ""
	}
	return revision + modified
}
