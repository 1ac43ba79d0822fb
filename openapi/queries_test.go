package openapi

import (
	"maps"
	"math"
	"net/url"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"animalstore"

	"github.com/getkin/kin-openapi/openapi3"
)

// TestQueries: the query types have the parameters of the document, with the same bounds, and
// reading what they write gives the same query.
func TestQueries(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(YAML)
	if err != nil {
		t.Fatal(err)
	}
	for name, read := range map[string]func(url.Values) (url.Values, error){
		"listPets":       reader(t, animalstore.ParsePetQuery),
		"getInventory":   reader(t, animalstore.ParseInventoryQuery),
		"listPhotos":     reader(t, animalstore.ParsePhotoQuery),
		"listOrders":     reader(t, animalstore.ParseOrderQuery),
		"listEvents":     reader(t, animalstore.ParseEventQuery),
		"listFailures":   reader(t, animalstore.ParseFailureQuery),
		"listDeliveries": reader(t, animalstore.ParseDeliveryQuery),
	} {
		for parameter := range queryParameters(doc, name) {
			good, bad := samples(parameter.Schema.Value, parameter.Example)
			for _, text := range good {
				got, err := read(url.Values{parameter.Name: {text}})
				if err != nil || !got.Has(parameter.Name) {
					t.Errorf("%s: %s=%.40s: got %v, %v, want it in the query", name, parameter.Name, text, got, err)
				}
			}
			for _, text := range bad {
				if got, err := read(url.Values{parameter.Name: {text}}); err == nil {
					t.Errorf("%s: %s=%.40s: got %v, want an error", name, parameter.Name, text, got)
				}
			}
			if got, err := read(url.Values{parameter.Name: {good[0], good[0]}}); err == nil && parameter.Schema.Value.Type.Is("string") {
				t.Errorf("%s: %s given twice: got %v, want an error", name, parameter.Name, got)
			}
		}
	}
}

// TestQueriesAreDocumented: every field of a query is a parameter of the document.
func TestQueriesAreDocumented(t *testing.T) {
	doc, err := openapi3.NewLoader().LoadFromData(YAML)
	if err != nil {
		t.Fatal(err)
	}
	now, one, ids := animalstore.AtMilli(1), int64(1), []int64{1}
	for name, full := range map[string]struct {
		query  any
		values url.Values
	}{
		"listPets":       full(animalstore.PetQuery{Status: "sold", CategoryID: &one, IDs: ids, Name: "x"}),
		"getInventory":   full(animalstore.InventoryQuery{CategoryID: &one}),
		"listPhotos":     full(animalstore.PhotoQuery{PetIDs: ids}),
		"listOrders":     full(animalstore.OrderQuery{Statuses: []animalstore.OrderStatus{"placed"}, PetID: 1, Reference: "x", Oldest: true}),
		"listEvents":     full(animalstore.EventQuery{Types: "pet.*", Subject: "pet/1", PetID: 1, After: &one, Latest: true, Before: 1, Newest: true, Since: now}),
		"listFailures":   full(animalstore.FailureQuery{KeyID: 1, Code: "unavailable", RequestID: "x", Since: now}),
		"listDeliveries": full(animalstore.DeliveryQuery{State: "failed"}),
	} {
		fields := reflect.ValueOf(full.query)
		for i := range fields.NumField() {
			if fields.Field(i).IsZero() {
				t.Errorf("%s: this test doesn't set %s", name, fields.Type().Field(i).Name)
			}
		}
		var want []string
		for p := range queryParameters(doc, name) {
			want = append(want, p.Name)
		}
		slices.Sort(want)
		if got := slices.Sorted(maps.Keys(full.values)); !slices.Equal(got, want) {
			t.Errorf("%s: got parameters %q, want %q", name, got, want)
		}
	}
}

func full(q interface{ Values() url.Values }) struct {
	query  any
	values url.Values
} {
	return struct {
		query  any
		values url.Values
	}{q, q.Values()}
}

// reader parses a query and returns what it writes.
func reader[Q interface{ Values() url.Values }](t *testing.T, parse func(url.Values) (Q, error)) func(url.Values) (url.Values, error) {
	return func(in url.Values) (url.Values, error) {
		q, err := parse(in)
		if err != nil {
			return nil, err
		}
		if again, err := parse(q.Values()); err != nil || !reflect.DeepEqual(again, q) {
			t.Errorf("%v: got %+v, then %+v, %v", in, q, again, err)
		}
		return q.Values(), nil
	}
}

// queryParameters yields those of an operation that are no part of how it is paged.
func queryParameters(doc *openapi3.T, operationID string) func(yield func(*openapi3.Parameter) bool) {
	return func(yield func(*openapi3.Parameter) bool) {
		for _, op := range operations(doc) {
			for _, p := range op.Parameters {
				paging := slices.Contains([]string{"limit", "cursor", "wait"}, p.Value.Name)
				if op.OperationID == operationID && p.Value.In == "query" && !paging && !yield(p.Value) {
					return
				}
			}
		}
	}
}

// samples returns values that a schema allows, and values that it doesn't.
func samples(schema *openapi3.Schema, example any) (good, bad []string) {
	if known, ok := schema.Extensions["x-extensible-enum"].([]any); ok {
		schema.Enum = known
	}
	switch {
	case schema.Type.Is("array"):
		example, _ := example.([]any)
		good, bad = samples(schema.Items.Value, append(example, nil)[0])
		if most := schema.MaxItems; most != nil {
			list := strings.Repeat(","+good[0], int(*most))[1:]
			good, bad = append(good, list), append(bad, list+","+good[0])
		}
		good, bad = append(good, good[0]+","+good[1]), append(bad, good[0]+",", ",")
	case schema.Enum != nil:
		for _, value := range schema.Enum {
			good = append(good, value.(string))
		}
		bad = []string{"", "other", good[0] + " "}
	case schema.Type.Is("integer"):
		least := int64(math.MinInt64)
		if schema.Min != nil {
			least = int64(*schema.Min)
			bad = append(bad, strconv.FormatInt(least-1, 10))
		}
		good = []string{strconv.FormatInt(least, 10), strconv.FormatInt(math.MaxInt64, 10)}
		bad = append(bad, "", "x", "1.5", "+1", "9223372036854775808", "-9223372036854775809")
	case schema.Format == "date-time":
		good, bad = []string{"2026-11-15T10:00:00Z"}, []string{"", "yesterday", "2026-11-15"}
	case schema.MaxLength != nil:
		most := int(*schema.MaxLength)
		good, bad = []string{"x", strings.Repeat("é", most)}, []string{"", strings.Repeat("é", most+1)}
	case schema.Pattern != "":
		good = []string{example.(string)}
		for _, text := range []string{"", "latest", "-1", "0", "01", "1", "pet", "pet/", "pet/x", "pet/01", "a b", strings.Repeat("x", 65)} {
			if !regexp.MustCompile(schema.Pattern).MatchString(text) {
				bad = append(bad, text)
			}
		}
	default: // event types
		good, bad = []string{"pet.created", "order.*"}, []string{"", "pet", "dog.*"}
	}
	return good, bad
}
