//go:build unix

package api_test

import (
	"context"
	"sync"
	"testing"

	"animalstore/internal/db/postgres"
	"animalstore/internal/db/postgres/pgtest"
)

// template is the name of a database with tables and nothing in them. A copy is quicker
// than the migrations.
var template struct {
	sync.Mutex
	name string
}

var postgresEngine = databaseEngine{"postgres", func(t testing.TB) string {
	t.Helper()
	server := pgtest.Shared(t)
	template.Lock()
	defer template.Unlock()
	if template.name == "" {
		url := server.NewDatabase(t, "")
		store, err := postgres.Open(context.Background(), url, postgres.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
		template.name = pgtest.Name(url)
	}
	return server.NewDatabase(t, template.name)
}}

func init() { stopPostgres = pgtest.Close }

// TestOnPostgres_Slow repeats the tests that use each kind of stored resource once. Package
// dbtest compares the engines in detail, and what comes before storage is the same on both.
func TestOnPostgres_Slow(t *testing.T) {
	engine = postgresEngine
	t.Cleanup(func() { engine = sqliteEngine })
	for name, test := range map[string]func(*testing.T){
		"AddPet":              TestAddPet,
		"ListWalk":            TestListWalk,
		"EveryListHasPages":   TestEveryListHasPages,
		"FindByName":          TestFindByName,
		"PageCache":           TestPageCache,
		"CategoryIDs":         TestCategoryIDs,
		"PlaceOrder":          TestPlaceOrder,
		"OrderOfStoreChecks":  TestOrderOfStoreChecks,
		"Replay":              TestReplay,
		"IfMatch":             TestIfMatch,
		"Photos":              TestPhotos,
		"LargeImage":          TestLargeImage,
		"EventsOfEveryChange": TestEventsOfEveryChange,
		"EventsExpire":        TestEventsExpire,
		"EventsOfOthers":      TestEventsOfOthers,
		"EventsWait":          TestEventsWait,
		"Stream":              TestStream,
		"TagsAreOfBytes":      TestTagsAreOfBytes,
		"NotCharged":          TestNotCharged,
		"WebhookLife":         TestWebhookLife,
		"Status":              TestStatus,
		"FailedRequests":      TestFailedRequests,
		"FailuresOfOthers":    TestFailuresOfOthers,
		"FailuresQuery":       TestFailuresQuery,
	} {
		t.Run(name, test)
	}
}
