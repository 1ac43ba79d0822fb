package api_test

import (
	"flag"
	"fmt"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
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

// stopPostgres ends the server of postgresEngine.
var stopPostgres = func() {}

// passes are the runs of the suite, of which ANIMALSTORE_API_PASSES selects some:
// sqlite is the whole suite, nethttp a part of it without the fast path, postgres
// the whole suite on PostgreSQL.
var passes = []string{"sqlite", "nethttp", "postgres"}

// TestMain runs the tests on each engine, and some of them without the fast path.
// It fails a full run in which a documented status of an operation, or a code,
// never came up.
func TestMain(m *testing.M) {
	if err := selectPasses(os.Getenv("ANIMALSTORE_API_PASSES")); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	flag.Parse()
	status := 0
	if slices.Contains(passes, "sqlite") || !runsTests() {
		status = m.Run()
	}
	if slices.Contains(passes, "nethttp") && fastPath && fullRun() && runsTests() {
		fmt.Println("a part of them without the fast path:")
		status = max(status, runWithoutFastPath(m))
	}
	if slices.Contains(passes, "postgres") && runsTests() && postgresEngine.newDatabase != nil {
		engine = postgresEngine
		fmt.Println("the same on PostgreSQL:")
		status = max(status, m.Run())
		stopPostgres()
	}
	if status == 0 && slices.Contains(passes, "sqlite") && fullRun() {
		for _, what := range provoked.missing() {
			fmt.Printf("%s is documented, but no test provokes it\n", what)
			status = 1
		}
	}
	os.Exit(status)
}

// selectPasses leaves those passes that the comma-separated list names; an empty
// list leaves them all.
func selectPasses(list string) error {
	if list == "" {
		return nil
	}
	selected := strings.Split(list, ",")
	for _, pass := range selected {
		if !slices.Contains(passes, pass) {
			return fmt.Errorf("ANIMALSTORE_API_PASSES has %q, want one or more of %s", pass, strings.Join(passes, ","))
		}
	}
	passes = selected
	return nil
}

// runsTests reports whether the command line asks for tests, rather than for
// fuzzing, benchmarks or a list.
func runsTests() bool {
	for _, flagName := range []string{"fuzz", "bench", "list"} {
		if flag.Lookup("test."+flagName).Value.String() != "" {
			return false
		}
	}
	return true
}

// fullRun reports whether no test is left out.
func fullRun() bool {
	for _, filter := range []string{"run", "skip", "fuzz", "list"} {
		if v := flag.Lookup("test." + filter).Value.String(); v != "" && v != "." {
			return false
		}
	}
	return true
}
