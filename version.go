package animalstore

import (
	_ "embed"
	"strings"
)

//go:embed VERSION
var versionFile string

// Version returns the content of the file VERSION: a semantic version such as 1.2.0,
// or 1.3.0-dev for everything between that release and the next.
func Version() string { return strings.TrimSpace(versionFile) }
