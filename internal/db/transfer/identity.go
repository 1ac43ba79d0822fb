package transfer

import (
	"context"
	"slices"
	"time"

	"animalstore/internal/db"
)

// Identity is what a store keeps about its own backups.
type Identity interface {
	// BackupID returns the id in the names of the store's backups, and the latest times that
	// BeginBackup stored since the store has this id.
	BackupID(ctx context.Context) (id string, latest db.Begun, err error)

	// BeginBackup stores the time of a backup, before it is made.
	BeginBackup(ctx context.Context, at db.Begun) error

	// RenewID gives the store a new id, if it still has the old one, and returns its id.
	RenewID(ctx context.Context, old string) (id string, err error)
}

// Identified is a store with its backups in a place.
type Identified struct {
	ID    string
	Found []Snapshot // of this id, newest first

	// Copied is a backup with the store's id that the store didn't make. Then the store is a
	// copy of another one, or another is a copy of it, so it has a new id now.
	Copied Snapshot
}

// Identify returns a store's id and its backups in a place. A file that was copied, or a
// machine with its disk, has the same id as the original, and each would delete the other's
// backups. So a store that finds one of its id that it didn't begin takes a new id.
//
// A store knows only the latest time that it ever began a backup in each kind of place. After
// a clock was ahead, copies are noticed only once that time has passed.
func Identify(ctx context.Context, store Identity, place Place, now time.Time) (Identified, error) {
	found, err := Snapshots(ctx, place, now)
	if err != nil {
		return Identified{}, err
	}
	// This comes after the list, because a backup is in the store before it is in a place.
	id, latest, err := store.BackupID(ctx)
	if err != nil {
		return Identified{}, err
	}
	found = slices.DeleteFunc(found, func(s Snapshot) bool { return s.Store != id })
	for _, s := range found {
		if s.At.After(*begunIn(place, &latest)) {
			id, err = store.RenewID(ctx, id)
			return Identified{ID: id, Copied: s}, err
		}
	}
	return Identified{ID: id, Found: found}, nil
}

// identify is Identify for the scheduler's store, and logs a new id.
func (s *Scheduler) identify(ctx context.Context, place Place) (id string, found []Snapshot, err error) {
	i, err := Identify(ctx, s, place, s.Now())
	if err == nil && i.Copied.Name != "" {
		s.Log.Warn("this store is a copy of another, or was copied: it has a new id now, and deletes no backups of the old one",
			"found", i.Copied.Name, "in", place, "old_id", i.Copied.Store, "id", i.ID)
	}
	return i.ID, i.Found, err
}

// begunIn is when a store last began a backup in a place.
func begunIn(place Place, b *db.Begun) *time.Time {
	if _, local := place.(Directory); local {
		return &b.Directory
	}
	return &b.Remote
}

// begin stores the time of a backup.
func (s *Scheduler) begin(ctx context.Context, place Place, at time.Time) error {
	var b db.Begun
	*begunIn(place, &b) = at
	return s.BeginBackup(ctx, b)
}
