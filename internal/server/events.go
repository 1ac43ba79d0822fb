package server

import (
	"context"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/events"
	"animalstore/internal/metrics"
)

// eventStore is a database as package events sees it.
type eventStore struct{ db.DB }

func (s eventStore) ReadEvents(ctx context.Context, after int64, types []animalstore.EventType, subject string, limit int) ([]animalstore.Event, int64, error) {
	return s.Events(ctx, db.EventQuery{After: after, Types: types, Subject: subject, Limit: limit})
}

// startHub starts what tells followers of new events.
func (s *Server) startHub() {
	s.hub = events.NewHub(eventStore{s.db}, s.cfg.Log)
	s.closers = append(s.closers, runInBackground(s.hub.Run))
}

func (s *Server) eventFigures() []metrics.Figure {
	followers, hub := s.handler.Stats(), s.hub.Stats()
	lag := gauge("animalstore_event_lag_seconds", "Time since this instance last looked for events: those who follow wait at least that long for them.", 0)
	lag.Value = hub.Age.Seconds()
	return []metrics.Figure{
		gauge("animalstore_event_newest_id", "Id of the newest event. Ids are consecutive, so its rate is that of events.", hub.Newest),
		gauge("animalstore_event_streams", "Streams of events that are open.", followers.Streams),
		gauge("animalstore_event_requests_waiting", "Requests that wait for an event.", followers.Waiting),
		gauge("animalstore_event_messages", "Events in memory for those who follow.", hub.Kept),
		counter("animalstore_event_streams_cut_total", "Streams that were ended because their clients didn't read.", followers.CutStreams),
		lag,
	}
}
