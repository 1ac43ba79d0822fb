package openapi

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// A check returns the problems it finds in a document, one sentence each.
type check struct {
	name string
	find func(*openapi3.T) []string
}

var checks = []check{
	{"is valid OpenAPI 3.1", findInvalid},
	{"examples fit their schemas", findBadExamples},
	{"everything is described and has an example", findUndocumented},
	{"operations are the expected ones", findOtherOperations},
	{"every response has its headers", findMissingHeaders},
	{"bodies are only where expected", findMisplacedBodies},
	{"condition headers match their statuses", findLooseConditions},
	{"error codes are listed", findStrayErrors},
	{"servers end with /v1", findBadServers},
}

func findInvalid(doc *openapi3.T) (wrong []string) {
	if doc.OpenAPI != "3.1.0" {
		wrong = append(wrong, fmt.Sprintf("openapi: got %s, want 3.1.0", doc.OpenAPI))
	}
	if err := doc.Validate(context.Background()); err != nil {
		wrong = append(wrong, err.Error())
	}
	return wrong
}

// findBadExamples validates every example, because kin-openapi skips those of
// headers and those under a schema's examples. Most examples are shared between
// operations and compiling a schema is slow, so each one is tried once.
func findBadExamples(doc *openapi3.T) (wrong []string) {
	type trial struct {
		schema *openapi3.Schema
		value  string
	}
	tried := map[trial]error{}
	try := func(where string, value any, schema *openapi3.SchemaRef) {
		this := trial{schema.Value, fmt.Sprint(value)}
		err, known := tried[this]
		if !known {
			err = schema.Value.VisitJSON(value, openapi3.EnableJSONSchema2020())
			tried[this] = err
		}
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("%s: example %v: %v", where, value, err))
		}
	}
	closed := false // examples have no other fields, though the service may add some
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		if s := doc.Components.Schemas[name].Value; s.Type.Is("object") {
			s.AdditionalProperties.Has = &closed
		}
	}
	for where, d := range documented(doc) {
		for _, value := range d.examples {
			try(where, value, d.schema)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		err := doc.Components.Schemas[name].WalkSubtree(func(path string, s *openapi3.SchemaRef) error {
			for _, value := range s.Value.Examples {
				try("schema "+name+path, value, s)
			}
			return nil
		})
		if err != nil {
			wrong = append(wrong, err.Error())
		}
	}
	return wrong
}

func findUndocumented(doc *openapi3.T) (wrong []string) {
	for where, d := range documented(doc) {
		if d.description == "" {
			wrong = append(wrong, where+": got no description, want one")
		}
		has, want := len(d.examples) > 0, d.schema != nil && d.schema.Value.Format != "binary" && !needsCaller(where)
		if has != want {
			wrong = append(wrong, where+": got "+quantity(has)+" example, want "+quantity(want))
		}
	}
	for name, op := range operations(doc) {
		if op.OperationID == "" {
			wrong = append(wrong, name+": got no operationId, want one")
		}
		if op.Summary == "" {
			wrong = append(wrong, name+": got no summary, want one")
		}
		if op.Description == "" {
			wrong = append(wrong, name+": got no description, want one")
		}
		if len(op.Tags) != 1 || doc.Tags.Get(op.Tags[0]) == nil {
			wrong = append(wrong, fmt.Sprintf("%s: got tags %v, want one that the document declares", name, op.Tags))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Schemas)) {
		if doc.Components.Schemas[name].Value.Description == "" {
			wrong = append(wrong, "schema "+name+": got no description, want one")
		}
	}
	return wrong
}

// needsCaller reports whether a parameter only works with a value that the caller
// got from a response or chose for this request. Programs such as the docs page send
// examples, so it must not have one.
func needsCaller(where string) bool {
	return strings.HasSuffix(where, " parameter cursor") || strings.HasSuffix(where, " parameter If-Match") ||
		strings.HasSuffix(where, " parameter Idempotency-Key") || strings.HasSuffix(where, " parameter Last-Event-ID") ||
		strings.HasPrefix(where, "PUT ") && strings.HasSuffix(where, " parameter If-None-Match")
}

func quantity(some bool) string {
	if some {
		return "an"
	}
	return "no"
}

// agreed lists the operations, the permission each needs and every status it can
// return.
var agreed = []string{
	"addPhoto: POST /pets/{petId}/photos: pets:write: 201 400 401 403 404 409 413 415 422 429 500 503",
	"createKey: POST /keys: admin: 201 400 401 403 413 415 429 500 503",
	"createPet: POST /pets: pets:write: 201 400 401 403 413 415 422 429 500 503",
	"createPetBatch: POST /pets/batch: pets:write: 201 400 401 403 413 415 422 429 500 503",
	"createWebhook: POST /webhooks: admin: 201 400 401 403 409 413 415 429 500 503",
	"deletePet: DELETE /pets/{petId}: pets:write: 204 401 403 404 409 412 429 500 503",
	"deletePhoto: DELETE /photos/{photoId}: pets:write: 204 401 403 404 412 429 500 503",
	"deleteWebhook: DELETE /webhooks/{webhookId}: admin: 204 401 403 404 412 429 500 503",
	"getCategory: GET /categories/{categoryId}: pets:read: 200 304 401 403 404 412 429 500 503",
	"getDelivery: GET /webhooks/{webhookId}/deliveries/{deliveryId}: admin: 200 304 401 403 404 412 429 500 503",
	"getImage: GET /photos/{photoId}/image: pets:read: 200 304 401 403 404 412 429 500 503",
	"getInventory: GET /store/inventory: pets:read: 200 304 400 401 403 412 429 500 503",
	"getKey: GET /keys/{keyId}: admin: 200 304 401 403 404 412 429 500 503",
	"getKeyUsage: GET /keys/{keyId}/usage: admin: 200 304 400 401 403 404 412 429 500 503",
	"getLimits: GET /limits: none: 200 304 401 403 412 429 500 503",
	"getOrder: GET /store/orders/{orderId}: orders:read: 200 304 401 403 404 412 429 500 503",
	"getPet: GET /pets/{petId}: pets:read: 200 304 401 403 404 410 412 429 500 503",
	"getPhoto: GET /photos/{photoId}: pets:read: 200 304 401 403 404 412 429 500 503",
	"getStatus: GET /status: admin: 200 304 401 403 412 429 500 503",
	"getThumbnail: GET /photos/{photoId}/thumbnail: pets:read: 200 304 401 403 404 412 429 500 503",
	"getUsage: GET /usage: none: 200 304 400 401 403 412 429 500 503",
	"getWebhook: GET /webhooks/{webhookId}: admin: 200 304 401 403 404 412 429 500 503",
	"listCategories: GET /categories: pets:read: 200 304 400 401 403 412 429 500 503",
	"listDeliveries: GET /webhooks/{webhookId}/deliveries: admin: 200 304 400 401 403 404 412 429 500 503",
	"listEvents: GET /events: pets:read or orders:read: 200 304 400 401 403 410 412 429 500 503",
	"listFailures: GET /failures: none: 200 304 400 401 403 412 429 500 503",
	"listKeys: GET /keys: admin: 200 304 400 401 403 412 429 500 503",
	"listOrders: GET /store/orders: orders:read: 200 304 400 401 403 412 429 500 503",
	"listPets: GET /pets: pets:read: 200 304 400 401 403 412 429 500 503",
	"listPhotos: GET /photos: pets:read: 200 304 400 401 403 412 429 500 503",
	"listWebhooks: GET /webhooks: admin: 200 304 400 401 403 412 429 500 503",
	"pingWebhook: POST /webhooks/{webhookId}/ping: admin: 202 400 401 403 404 413 415 429 500 503",
	"placeOrder: POST /store/orders: orders:write: 201 400 401 403 404 409 413 415 422 429 500 503",
	"putCategory: PUT /categories/{categoryId}: pets:write: 200 201 400 401 403 404 412 413 415 429 500 503",
	"retryDeliveries: POST /webhooks/{webhookId}/deliveries/retry: admin: 202 400 401 403 404 413 415 429 500 503",
	"retryDelivery: POST /webhooks/{webhookId}/deliveries/{deliveryId}/retry: admin: 202 401 403 404 429 500 503",
	"revokeKey: DELETE /keys/{keyId}: admin: 204 401 403 404 409 412 429 500 503",
	"rotateKey: POST /keys/{keyId}/rotate: admin: 200 400 401 403 404 409 412 413 415 429 500 503",
	"rotateWebhook: POST /webhooks/{webhookId}/rotate: admin: 200 400 401 403 404 412 413 415 429 500 503",
	"unbanKey: POST /keys/{keyId}/unban: admin: 200 401 403 404 412 429 500 503",
	"updateKey: PATCH /keys/{keyId}: admin: 200 400 401 403 404 409 412 413 415 429 500 503",
	"updateOrder: PATCH /store/orders/{orderId}: orders:write: 200 400 401 403 404 409 412 413 415 429 500 503",
	"updatePet: PATCH /pets/{petId}: pets:write: 200 400 401 403 404 409 412 413 415 429 500 503",
	"updateWebhook: PATCH /webhooks/{webhookId}: admin: 200 400 401 403 404 412 413 415 429 500 503",
}

var permission = regexp.MustCompile("Needs\\s+(?:no|the\\s+`([a-z:]+)`(?:\\s+or\\s+the\\s+`([a-z:]+)`)?)\\s+permission")

func findOtherOperations(doc *openapi3.T) (wrong []string) {
	var got []string
	for name, op := range operations(doc) {
		statuses := slices.Sorted(maps.Keys(op.Responses.Map()))
		needs := "no permission named"
		if match := permission.FindStringSubmatch(op.Description); match != nil {
			needs = cmp.Or(strings.TrimSuffix(match[1]+" or "+match[2], " or "), "none")
		}
		got = append(got, op.OperationID+": "+name+": "+needs+": "+strings.Join(statuses, " "))
		if op.Responses.Default() != nil {
			wrong = append(wrong, name+": got a default response, want none")
		}
		if op.Deprecated != (op.OperationID == "getPet") {
			wrong = append(wrong, fmt.Sprintf("%s: got deprecated %t, want %t", name, op.Deprecated, !op.Deprecated))
		}
		if op.Security != nil {
			wrong = append(wrong, fmt.Sprintf("%s: got its own security %v, want the document's", name, *op.Security))
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, agreed) {
		wrong = append(wrong, fmt.Sprintf("operations:\n got %s\nwant %s", strings.Join(got, "\n     "), strings.Join(agreed, "\n     ")))
	}
	if len(doc.Security) != 1 || len(doc.Security[0]) != 1 {
		wrong = append(wrong, fmt.Sprintf("security: got %v, want only the bearer key", doc.Security))
	}
	return wrong
}

func findBadServers(doc *openapi3.T) (wrong []string) {
	if len(doc.Servers) != 2 {
		wrong = append(wrong, fmt.Sprintf("got %d servers, want production and staging", len(doc.Servers)))
	}
	for _, server := range doc.Servers {
		if !strings.HasSuffix(server.URL, "/v1") {
			wrong = append(wrong, fmt.Sprintf("%s: got %s, want a URL that ends in /v1", server.Description, server.URL))
		}
	}
	return wrong
}
