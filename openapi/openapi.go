// Package openapi contains the service's contract as an OpenAPI 3.1 document.
//
// openapi.yaml is written by hand. The server, the client and the tests must
// conform to it. openapi.json is generated from it; after a change run
//
//	go test ./openapi -update
package openapi

import _ "embed"

// YAML is the document in the form people read.
//
//go:embed openapi.yaml
var YAML []byte

// JSON is the same document for programs, with its fields in the same order.
//
//go:embed openapi.json
var JSON []byte
