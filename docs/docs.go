// Package docs contains the guides and the decisions, so that the server can show
// them at /docs/guides.
package docs

import "embed"

// Files are the Markdown files in this directory.
//
//go:embed *.md decisions/*.md
var Files embed.FS
