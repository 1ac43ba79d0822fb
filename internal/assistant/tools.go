package assistant

import (
	"context"
	"iter"
	"slices"
	"sync"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/strictjson"
)

// tool is what an assistant can do with the store.
type tool struct {
	name        string
	title       string
	description string
	effect      effect
	repeatable  bool     // calling it again with the same arguments changes nothing more
	operations  []string // of the API that it calls, by their operationId
	parameters  []parameter
	output      object
	read        func(args *strictjson.Arguments) request
}

// effect is what a tool does to the store.
type effect int

const (
	reads effect = iota
	changes
	destroys
)

// request is a call of a tool whose arguments are valid. It returns the result.
type request func(ctx context.Context, api *client.Client) (any, error)

const (
	maxPage         = 100 // entries
	defaultPage     = 20
	maxSearch       = 100 // characters
	oldest          = "oldest"
	maxIdempotency  = 255
	maxCursorLength = 2048
)

// These parameters are the same in several tools.
var (
	limitParameter = parameter{name: "limit", schema: object{
		"type": "integer", "minimum": 1, "maximum": maxPage, "default": defaultPage, "description": "How many to return at most.",
	}}
	cursorParameter      = parameter{name: "cursor", schema: object{"type": "string", "maxLength": maxCursorLength, "description": "The nextCursor of the page before. Leave it out for the first page."}}
	petParameter         = required(id("petId", "The pet's id."))
	idempotencyParameter = parameter{name: "idempotencyKey", schema: object{
		"type": "string", "minLength": 1, "maxLength": maxIdempotency, "pattern": "^[!-~]+$",
		"description": "Optional: any text without spaces that is new for each thing you want done. " +
			"If you repeat a call with the same key and arguments, for example because its result was lost, " +
			"it isn't done twice.",
	}}
	petStatusParameter   = choice("status", animalstore.PetStatuses, "The pet's status, available if left out.")
	petNameParameter     = text("name", animalstore.MaxNameLength, "The pet's name.")
	categoryParameter    = integer("categoryId", "The id of the pet's category. Any integer is valid; list_categories shows those in use.")
	newCategoryParameter = integer("categoryId", "The id of the new category.")
)

// tools are all tools, in the order in which they are listed.
var tools = sync.OnceValue(func() []tool {
	schema := resources()
	return slices.Concat(petTools(schema), orderTools(schema), storeTools(schema))
})

// mayUse reports whether all operations of a tool are allowed.
func mayUse(name string, allowed func(operation string) bool) bool {
	i := slices.IndexFunc(tools(), func(t tool) bool { return t.name == name })
	return !slices.ContainsFunc(tools()[i].operations, func(operation string) bool { return !allowed(operation) })
}

// pageSize is the number of entries of a page.
func pageSize(args *strictjson.Arguments, fallback int) int {
	if n := args.Positive("limit"); n != nil {
		return int(*n)
	}
	return fallback
}

// page are the options for the page of a list that begins at the argument cursor.
func page(args *strictjson.Arguments, entries int, meta *client.Meta) []client.CallOption {
	return []client.CallOption{
		client.PageSize(pageSize(args, entries)), client.FromCursor(value(args.String("cursor"))), client.OnePage(), client.ReadMeta(meta),
	}
}

// pageOf is a result with the entries of a list in the field name, and where it goes on.
func pageOf[T any](name string, list iter.Seq2[T, error], meta *client.Meta) (object, error) {
	entries, err := collect(list)
	result := object{name: entries, "nextCursor": nil}
	if meta.NextCursor != "" {
		result["nextCursor"] = meta.NextCursor
	}
	return result, err
}

// collect returns the entries of a list.
func collect[T any](list iter.Seq2[T, error]) ([]T, error) {
	entries := []T{} // not null
	for entry, err := range list {
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry)
	}
	return entries, nil
}

// value returns what p points to, or the zero value.
func value[T any](p *T) T {
	if p == nil {
		return *new(T)
	}
	return *p
}

type callOptions = []client.CallOption

// idempotency are the options for the argument idempotencyKey. Without it, the client makes
// one for its own retries. replayed reports whether the result is that of an earlier call.
func idempotency(args *strictjson.Arguments) (options callOptions, replayed func() bool) {
	key := args.Visible("idempotencyKey", maxIdempotency)
	if key == nil {
		return nil, func() bool { return false }
	}
	var meta client.Meta
	return callOptions{client.IdempotencyKey(*key), client.ReadMeta(&meta)}, func() bool { return meta.Replayed && !meta.Resent }
}

// replay is the result of an earlier call with the same idempotencyKey, an object.
type replay struct{ result any }

func (r replay) MarshalJSON() ([]byte, error) {
	body, err := animalstore.EncodeJSON(r.result)
	if err != nil {
		return nil, err
	}
	return append(body[:len(body)-1], `,"replayed":true}`...), nil
}

// once calls a tool that takes an idempotencyKey.
func once[T any](args *strictjson.Arguments, call func(context.Context, *client.Client, callOptions) (T, error)) request {
	options, replayed := idempotency(args)
	return func(ctx context.Context, api *client.Client) (any, error) {
		result, err := call(ctx, api, options)
		if err == nil && replayed() {
			return replay{result}, nil
		}
		return result, err
	}
}
