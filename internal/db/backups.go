package db

import "time"

// Begun is the latest times in the names of a store's backups, for each kind of place. Zero
// and the start of 1970 mean never.
type Begun struct{ Directory, Remote time.Time }

// Latest returns the later times of both.
func (b Begun) Latest(other Begun) Begun {
	if other.Directory.After(b.Directory) {
		b.Directory = other.Directory
	}
	if other.Remote.After(b.Remote) {
		b.Remote = other.Remote
	}
	return b
}
