// Package openapi holds the contract of the service as an OpenAPI 3.1 document.
//
// openapi.yaml is written by hand and is what the server, the client and the
// tests are held to. openapi.json is made from it; after a change run
//
//	go test ./openapi -update
package openapi

import _ "embed"

// YAML is the document as people read it.
//
//go:embed openapi.yaml
var YAML []byte

// JSON is the same document for programs, its members in the same order.
//
//go:embed openapi.json
var JSON []byte
