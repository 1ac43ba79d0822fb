package db

import (
	"errors"
	"fmt"
)

// ErrDevelopment refuses a store whose tables were changed in place before the first
// release.
var ErrDevelopment = errors.New(`this store was made by a development version, whose tables have changed: create a new store. To keep the pets, run that version, use its "animalstore pets export", and import the file into the new store`)

// NewerError refuses tables of a version that this program doesn't know.
func NewerError(have, known int64) error {
	return fmt.Errorf("this store was written by a newer animalstore (its tables are at version %d, this program supports up to %d). Run that version", have, known)
}

// OutdatedError refuses tables that have to be migrated first.
func OutdatedError(have, known int64) error {
	return fmt.Errorf("its tables are at version %d, this program needs %d. Migrate them first: animalstore db migrate", have, known)
}
