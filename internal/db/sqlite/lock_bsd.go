//go:build unix && !linux

package sqlite

import "os"

// lockDatabaseFile does nothing: on these systems flock conflicts with the locks that
// SQLite takes on the same file.
func lockDatabaseFile(string) (*os.File, error) { return nil, nil }

func refuseAlias(string) error { return nil }
