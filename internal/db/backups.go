package db

import "time"

// Begun is the latest times in the names of a store's backups, for each kind of place. Zero
// and the start of 1970 mean never.
type Begun struct{ Directory, Remote time.Time }
