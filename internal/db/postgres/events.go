package postgres

import (
	"context"
	"errors"

	"animalstore"
	"animalstore/internal/db"
)

var errNotBuilt = errors.New("events on PostgreSQL are not built yet")

// Events implements [db.DB].
func (d *DB) Events(ctx context.Context, q db.EventQuery) (events []animalstore.Event, last int64, err error) {
	return nil, 0, errNotBuilt
}

// EventRange implements [db.DB].
func (d *DB) EventRange(ctx context.Context) (first, newest int64, err error) {
	return 0, 0, errNotBuilt
}

// PublishEvents implements [db.DB].
func (d *DB) PublishEvents(ctx context.Context) (newest int64, err error) { return 0, errNotBuilt }

// DropEvents implements [db.DB].
func (d *DB) DropEvents(ctx context.Context, before animalstore.Time, max int) (dropped int, err error) {
	return 0, errNotBuilt
}
