package server

import (
	"cmp"
	"context"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/events"
)

// eventStore is a database as package events sees it.
type eventStore struct{ db.DB }

func (s eventStore) ReadEvents(ctx context.Context, after int64, types []animalstore.EventType, subject string, limit int) ([]animalstore.Event, int64, error) {
	return s.Events(ctx, db.EventQuery{After: after, Types: types, Subject: subject, Limit: limit})
}

// startHub starts the hub, which notifies followers of new events.
func (s *Server) startHub() {
	s.hub = events.NewHub(eventStore{s.db}, s.cfg.Log)
	s.hub.LookEvery = cmp.Or(s.cfg.EventsEvery, s.hub.LookEvery)
	s.closers = append(s.closers, runInBackground(s.hub.Run))
}
