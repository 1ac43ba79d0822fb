package api_test

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"

	"animalstore"
)

var (
	validRequestID = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

	// leaks must never show in a message to a caller.
	leaks = regexp.MustCompile(`(?i)sqlite|postgres|pgx|sqlstate|\bsql\b|goroutine|\.go\b|runtime error|nil pointer|panic|/tmp/|/internal/|\.db\b|secret detail`)
)

// provoked collects what the tests have seen.
var provoked = &coverage{statuses: map[string]int{}, codes: map[animalstore.Code]bool{}}

type coverage struct {
	mu       sync.Mutex
	statuses map[string]int // how often, by "operation status"
	codes    map[animalstore.Code]bool
}

func (c *coverage) add(operation, method string, status int) {
	if method == http.MethodHead {
		return // the document describes GET
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.statuses[operation+" "+strconv.Itoa(status)]++
}

func (c *coverage) count(operation string, status int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.statuses[operation+" "+strconv.Itoa(status)]
}

func (c *coverage) addCode(code animalstore.Code) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.codes[code] = true
}

// missing lists what is documented and no test has seen.
func (c *coverage) missing() (missing []string) {
	for _, item := range document().Paths.Map() {
		for _, op := range item.Operations() {
			for status := range op.Responses.Map() {
				if pair := op.OperationID + " " + status; c.statuses[pair] == 0 {
					missing = append(missing, pair)
				}
			}
		}
	}
	for _, code := range animalstore.Codes {
		if !c.codes[code] {
			missing = append(missing, string(code))
		}
	}
	slices.Sort(missing)
	return missing
}

// stopPostgres ends the server of TestOnPostgres_Slow.
var stopPostgres = func() {}

// TestMain fails a full run in which a documented status of an operation, or a code, never
// came up.
func TestMain(m *testing.M) {
	flag.Parse()
	status := m.Run()
	stopPostgres()
	if status == 0 && fullRun() {
		for _, what := range provoked.missing() {
			fmt.Printf("%s is documented, but no test provokes it\n", what)
			status = 1
		}
	}
	os.Exit(status)
}

// fullRun reports whether no test is left out but those of make check.
func fullRun() bool {
	value := func(name string) string { return flag.Lookup("test." + name).Value.String() }
	run, skip := value("run"), value("skip")
	return (run == "" || run == ".") && (skip == "" || skip == "_Slow") && value("fuzz") == "" && value("list") == ""
}
