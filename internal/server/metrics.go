package server

import (
	"context"
	"time"

	"animalstore"
	"animalstore/internal/db/postgres"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/metrics"
	"animalstore/internal/ratelimit"
)

// addMetrics adds metrics about the load on the server's parts.
func (s *Server) addMetrics() {
	s.metrics.AddFigures(s.serverFigures)
	s.metrics.AddFigures(s.eventFigures)
	s.metrics.AddFigures(s.webhookFigures)
	s.metrics.AddFigures(s.petFigures)
	if shared, ok := s.limiter.(*ratelimit.Redis); ok {
		s.metrics.AddFigures(func() []metrics.Figure { return redisFigures(shared.Stats()) })
	}
	switch engine := s.engine.(type) {
	case *sqlite.DB:
		s.metrics.AddFigures(func() []metrics.Figure { return sqliteFigures(engine.Stats()) })
	case *postgres.DB:
		s.metrics.AddFigures(func() []metrics.Figure { return postgresFigures(engine) })
	}
}

// state sets the fields of a status that the API doesn't know.
func (s *Server) state(status *animalstore.Status) {
	switch engine := s.engine.(type) {
	case *sqlite.DB:
		status.Engine, status.WriteQueue = "sqlite", engine.Stats().QueuedWrites
	case *postgres.DB:
		status.Engine, status.WriteQueue = "postgres", int64(engine.Stats().Waiting)
	}
	if s.backups != nil {
		if last := s.backups.Last(); !last.At.IsZero() {
			status.LastBackup = &last
		}
		status.RemoteBackup = s.backups.Remote()
	}
}

func (s *Server) serverFigures() []metrics.Figure {
	stats := s.handler.Stats()
	figures := []metrics.Figure{
		counter("animalstore_page_cache_hits_total", "Pages served from memory.", stats.PageHits),
		counter("animalstore_page_cache_misses_total", "Pages that had to be read from the database.", stats.PageMisses),
		counter("animalstore_failures_lost_total", "Failed requests that couldn't be stored for GET /v1/failures.", stats.LostFailures),
		gauge("animalstore_limit_keys", "Keys whose limits are in memory.", s.limiter.Tracked()),
		gauge("animalstore_limit_addresses", "Addresses whose requests without a valid key are counted.", stats.Addresses),
	}
	if s.certs != nil {
		for name, expires := range s.certs.Expiries() {
			figures = append(figures, gauge("animalstore_certificate_expiry_timestamp_seconds",
				"When a certificate expires, in Unix time.", expires.Unix(), "name", name))
		}
	}
	return figures
}

// eventFigures are metrics about the followers of events.
func (s *Server) eventFigures() []metrics.Figure {
	followers, hub := s.handler.Stats(), s.hub.Stats()
	return []metrics.Figure{
		gauge("animalstore_event_newest_id", "Id of the newest event. Ids are consecutive, so its rate is the rate of events.", hub.Newest),
		gauge("animalstore_event_streams", "Open event streams.", followers.Streams),
		gauge("animalstore_event_requests_waiting", "Requests waiting for an event.", followers.Waiting),
		gauge("animalstore_event_messages", "Events in memory for followers.", hub.Kept),
		counter("animalstore_event_streams_cut_total", "Streams that were ended because their clients didn't read.", followers.CutStreams),
		gauge("animalstore_event_lag_seconds",
			"Time since this instance last polled for events, which is the least time that followers wait for them.", hub.Age.Seconds()),
	}
}

// queryTimeout is how long a scrape waits for the database.
const queryTimeout = time.Second

// webhookFigures are metrics about webhooks. There are none if the database doesn't
// respond.
func (s *Server) webhookFigures() []metrics.Figure {
	ctx, cancel := context.WithTimeout(context.Background(), queryTimeout)
	defer cancel()
	now := s.cfg.Hooks.Now()
	stats, err := s.db.WebhookStats(ctx, animalstore.At(now))
	if err != nil {
		return nil
	}
	age := 0.0
	if !stats.OldestDue.IsZero() {
		age = max(0, now.Sub(stats.OldestDue.Time).Seconds())
	}
	figures := []metrics.Figure{
		gauge("animalstore_webhook_oldest_due_seconds", "How long the oldest due delivery has been waiting; 0 if none is due.", age),
		gauge("animalstore_webhook_deliveries_waiting",
			"Deliveries to active webhooks that are due or will be tried again, at most 10,000 for each.", stats.Waiting),
	}
	for state, n := range map[string]int{"active": stats.Active, "paused": stats.Paused, "disabled": stats.Disabled} {
		figures = append(figures, gauge("animalstore_webhooks", "Webhooks by state.", n, "state", state))
	}
	return figures
}

// petsTimeout is how long a scrape waits for a count of pets, which takes a second in a
// store of millions.
const petsTimeout = 3 * time.Second

// petFigures are the pets by status. Scrapes share their counts with requests, so they make
// at most one in ten seconds. There are none if the pets can't be counted now.
func (s *Server) petFigures() []metrics.Figure {
	ctx, cancel := context.WithTimeout(context.Background(), petsTimeout)
	defer cancel()
	inventory, err := s.handler.Inventory(ctx)
	figures := []metrics.Figure{
		counter("animalstore_inventory_counts_total", "Counts of pets, of the whole store or a category, that this instance made.", s.handler.Stats().InventoryCounts),
	}
	if err != nil {
		return figures
	}
	for _, status := range animalstore.PetStatuses {
		figures = append(figures, gauge("animalstore_pets", "Pets by status, at most ten seconds old.",
			inventory.Of(status), "status", string(status)))
	}
	return figures
}

// backupFigures are metrics about the backups in a directory.
func backupFigures(last animalstore.Backup, every time.Duration) []metrics.Figure {
	return []metrics.Figure{
		gauge("animalstore_backup_interval_seconds", "How long after a backup the next one is due.", every.Seconds()),
		gauge("animalstore_backup_last_success_timestamp_seconds", "When the newest backup began, in Unix time; 0 if there is none.", unixOrZero(last.At)),
		gauge("animalstore_backup_last_size_bytes", "Size of the newest backup.", last.SizeBytes),
		counter("animalstore_backup_failures_total", "Backups that failed since the server started.", last.Failures),
	}
}

// remoteBackupFigures are metrics about the backups on another machine.
func remoteBackupFigures(remote *animalstore.RemoteBackup) []metrics.Figure {
	return []metrics.Figure{
		gauge("animalstore_remote_backup_last_success_timestamp_seconds", "When the newest backup on another machine began, in Unix time; 0 if there is none.", unixOrZero(remote.At)),
		gauge("animalstore_remote_backup_last_size_bytes", "Size of the newest backup on another machine.", remote.SizeBytes),
		counter("animalstore_remote_backup_failures_total", "Attempts to make a backup on another machine that failed since the server started.", remote.Failures),
		gauge("animalstore_remote_backup_failing",
			"1 if the last attempt to make a backup on another machine failed.", zeroOrOne(remote.Failing)),
	}
}

func unixOrZero(t animalstore.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.Unix()
}

func redisFigures(s ratelimit.RedisStats) []metrics.Figure {
	return []metrics.Figure{
		gauge("animalstore_limit_fallback",
			"1 while Redis doesn't respond and this instance applies limits on its own.", zeroOrOne(s.Fallback)),
		counter("animalstore_limit_shared_decisions_total", "Requests decided by Redis.", s.Shared),
		counter("animalstore_limit_fallback_decisions_total", "Requests that this instance decided on its own.", s.FallbackDecisions),
		counter("animalstore_limit_fallbacks_total", "Times that Redis became unreachable.", s.Outages),
		counter("animalstore_redis_calls_total", "Calls to Redis, with or without a reply.", s.Calls),
		counter("animalstore_redis_failures_total", "Requests that Redis didn't reply to, or not in time.", s.Failures),
		counter("animalstore_redis_forgotten_keys_total", "Keys that Redis had forgotten and that were sent again.", s.Reseeds),
		counter("animalstore_redis_call_seconds_total", "Total time spent in calls to Redis.", s.Took.Seconds()),
	}
}

func sqliteFigures(s sqlite.Stats) []metrics.Figure {
	return []metrics.Figure{
		gauge("animalstore_sqlite_write_queue_length", "Writes waiting for the write connection.", s.QueuedWrites),
		counter("animalstore_sqlite_commits_total", "Committed transactions. Writes divided by commits is the size of a batch.", s.Commits),
		counter("animalstore_sqlite_writes_total", "Writes in all commits.", s.Writes),
		gauge("animalstore_sqlite_readers", "Read connections.", s.Readers),
		gauge("animalstore_sqlite_readers_busy", "Read connections in use.", s.BusyReaders),
		gauge("animalstore_sqlite_reads_waiting", "Reads waiting for a connection.", s.WaitingReads),
		gauge("animalstore_sqlite_file_bytes", "Size of the database file.", s.FileBytes),
		gauge("animalstore_sqlite_wal_bytes", "Size of the write-ahead log.", s.WALBytes),
	}
}

// postgresFigures lack the size if the database doesn't respond.
func postgresFigures(engine *postgres.DB) []metrics.Figure {
	s := engine.Stats()
	figures := []metrics.Figure{
		gauge("animalstore_postgres_pool_acquired", "Connections in use.", s.Acquired),
		gauge("animalstore_postgres_pool_idle", "Open connections not in use.", s.Idle),
		gauge("animalstore_postgres_pool_max", "Maximum number of open connections.", s.Max),
		gauge("animalstore_postgres_pool_waiting", "Operations waiting for a connection.", s.Waiting),
		counter("animalstore_postgres_pool_waits_total", "Times that no connection was free.", s.Waits),
		counter("animalstore_postgres_pool_wait_seconds_total", "Time spent waiting for a connection.", s.WaitTime.Seconds()),
	}
	ctx, cancel := context.WithTimeout(context.Background(), queryTimeout)
	defer cancel()
	if size, err := engine.Size(ctx); err == nil {
		figures = append(figures, gauge("animalstore_postgres_database_bytes", "Size of the database.", size))
	}
	return figures
}

func zeroOrOne(is bool) int {
	if is {
		return 1
	}
	return 0
}

func counter[N int64 | float64](name, help string, value N) metrics.Figure {
	return metrics.Counter(name, help, float64(value))
}

func gauge[N int | int64 | float64](name, help string, value N, label ...string) metrics.Figure {
	return metrics.Gauge(name, help, float64(value), label...)
}
