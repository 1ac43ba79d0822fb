package e2e

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// keyID is the id of the key with this name.
func keyID(t testing.TB, database, name string) string {
	t.Helper()
	var all []struct {
		ID   int64
		Name string
	}
	list := command(t, database, "list", "--json")
	if err := json.Unmarshal([]byte(list.stdout), &all); err != nil {
		t.Fatalf("keys list: %v\n%s%s", err, list.stdout, list.stderr)
	}
	for _, k := range all {
		if k.Name == name {
			return strconv.FormatInt(k.ID, 10)
		}
	}
	t.Fatalf("no key is called %s:\n%s", name, list.stdout)
	return ""
}

// command runs a keys command that must succeed.
func command(t testing.TB, database string, args ...string) result {
	t.Helper()
	r := run(t, slices.Concat([]string{"keys"}, args, []string{"--database", databaseFlag(database)})...)
	if r.code != 0 {
		t.Fatalf("keys %s: exit code %d\n%s", strings.Join(args, " "), r.code, r.stderr)
	}
	return r
}
