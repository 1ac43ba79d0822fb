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

// stopPostgres ends the server of postgresEngine.
var stopPostgres = func() {}

// onPostgres are the tests that a full run repeats on PostgreSQL: those of what is stored
// and how it is read back. What comes before storage is the same on both engines.
const onPostgres = "^(TestAddPet|TestNumbers|TestPatchPet|TestDeletePet|TestNoLostUpdates|TestPageCache|" +
	"TestListWalk|TestFilters|TestIDFilter|TestEveryListHasPages|TestFindByName|TestNameCursors|TestShortPages|" +
	"TestCategoriesComeWithPets|TestPutCategory|TestCategoryIDs|TestPlaceOrder|TestInventory|TestRefusals|" +
	"TestPhotos|TestListPhotos|TestLargeImage|TestPhotoIdempotency|TestPhotoEvents|" +
	"TestReplay|TestFailuresAreNotStored|TestIfMatch|TestETags|TestTagsWithoutUse|" +
	"TestEventsOfEveryChange|TestEventPages|TestEventsBackwards|TestEventsExpire|TestEventsWait|TestActors|TestStream|" +
	"TestCreateKey|TestUpdateKey|TestRotate|TestLastAdmin|TestLastUse|TestChangesTakeEffect|TestUsage|TestLimitsUnknown|" +
	"TestWebhookLife|TestTooManyWebhooks|TestWebhookRotation|TestRetryDeliveries|TestStatus)$"

// withoutFastPath are the tests that a full run repeats on net/http alone: those that
// depend on how requests are read and responses are written.
const withoutFastPath = "^(TestAddPet|TestBodyOnTheWire|TestCORS|TestETags|TestEveryOperation|TestFastPath|TestHead|TestMethods|TestRequestID|TestStream)$"

// TestMain runs the tests on SQLite and, unless the run is short, some of them on PostgreSQL
// and some without the fast path. It fails a full run in which a documented status of an operation, or a code,
// never came up.
func TestMain(m *testing.M) {
	flag.Parse()
	status := m.Run()
	if runsTests() && !testing.Short() && postgresEngine.newDatabase != nil {
		fmt.Println("the same on PostgreSQL:")
		sqliteEngine := engine
		engine = postgresEngine
		status = max(status, runOnly(m, onPostgres))
		engine = sqliteEngine
		stopPostgres()
	}
	if runsTests() && !testing.Short() {
		fmt.Println("the same without the fast path:")
		fastPath = false
		status = max(status, runOnly(m, withoutFastPath))
	}
	if status == 0 && fullRun() {
		for _, what := range provoked.missing() {
			fmt.Printf("%s is documented, but no test provokes it\n", what)
			status = 1
		}
	}
	os.Exit(status)
}

// runOnly runs some tests in a full run, and otherwise those that the command line names.
func runOnly(m *testing.M, tests string) int {
	if fullRun() {
		flag.Set("test.run", tests)
		defer flag.Set("test.run", "")
	}
	return m.Run()
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
