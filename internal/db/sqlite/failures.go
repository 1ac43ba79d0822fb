package sqlite

import (
	"context"

	"animalstore"
	"animalstore/internal/db"

	"zombiezen.com/go/sqlite"
)

// AddFailures implements [db.DB].
func (d *DB) AddFailures(ctx context.Context, failures []animalstore.Failure, limits db.FailureLimits) error {
	return d.writer.do(ctx, func(c *sqlite.Conn) error {
		added := 0
		keys := map[int64]bool{}
		for i := range failures {
			if err := insertFailure(c, &failures[i]); err != nil {
				return err
			}
			added += c.Changes()
			keys[failures[i].KeyID] = true
		}
		for id := range keys {
			if err := execute(c, "drop failures of a key", dropFailuresOfKey, id, limits.PerKey); err != nil {
				return err
			}
			added -= c.Changes()
		}
		total, err := selectInt(c, "count failures", "UPDATE failure_total SET stored = stored + ? WHERE id = 1 RETURNING stored", added)
		if err != nil || total <= int64(limits.Total) {
			return err
		}
		_, err = dropFailures(c, "DELETE FROM failures WHERE id IN (SELECT id FROM failures ORDER BY id LIMIT ?)", total-int64(limits.Total))
		return err
	})
}

const dropFailuresOfKey = "DELETE FROM failures WHERE key_id = ?1 AND id <= (SELECT id FROM failures WHERE key_id = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)"

func insertFailure(c *sqlite.Conn, f *animalstore.Failure) error {
	route, path := db.StoredRoute(f)
	return execute(c, "insert failure", `INSERT INTO failures (time, request_id, key_id, method, route, path, status, code, message, duration_ms)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING`,
		f.Time.Milli(), f.RequestID, f.KeyID, f.Method, route, path, f.Status, string(f.Code), f.Message, f.DurationMs)
}

// dropFailures runs a statement that deletes failures, and counts them.
func dropFailures(c *sqlite.Conn, query string, args ...any) (dropped int, err error) {
	if err := execute(c, "drop failures", query, args...); err != nil {
		return 0, err
	}
	dropped = c.Changes()
	return dropped, execute(c, "count failures", "UPDATE failure_total SET stored = stored - ? WHERE id = 1", dropped)
}

// A key has few failures, so its index is enough for every other filter too.
var listFailures = db.FailureLists{
	All: "SELECT " + db.FailureColumns + ` FROM failures NOT INDEXED
		WHERE id < ?1 AND time >= ?3
		AND id > coalesce((SELECT id FROM failures WHERE time < ?4 ORDER BY time DESC LIMIT 1), 0)
		ORDER BY id DESC LIMIT +?2`,
	ByKey: "SELECT " + db.FailureColumns + ` FROM failures INDEXED BY failures_by_key
		WHERE id < ?1 AND time >= ?3
		AND id > coalesce((SELECT id FROM failures WHERE time < ?4 ORDER BY time DESC LIMIT 1), 0)
		AND key_id = ?5 AND (?6 = '' OR request_id = ?6) AND (?7 = '' OR code = ?7) ORDER BY id DESC LIMIT +?2`,
	ByRequest: "SELECT " + db.FailureColumns + ` FROM failures INDEXED BY failures_by_request
		WHERE id < ?1 AND time >= ?3
		AND id > coalesce((SELECT id FROM failures WHERE time < ?4 ORDER BY time DESC LIMIT 1), 0)
		AND request_id = ?5 AND (?6 = '' OR code = ?6) ORDER BY id DESC LIMIT +?2`,
	ByCode: "SELECT " + db.FailureColumns + ` FROM failures INDEXED BY failures_by_code
		WHERE id < ?1 AND time >= ?3
		AND id > coalesce((SELECT id FROM failures WHERE time < ?4 ORDER BY time DESC LIMIT 1), 0)
		AND code = ?5 ORDER BY id DESC LIMIT +?2`,
}

// Failures implements [db.DB].
func (d *DB) Failures(ctx context.Context, q animalstore.FailureQuery, page db.Page) ([]animalstore.Failure, error) {
	statement, args := listFailures.Statement(q, page)
	return list(ctx, d, "select failures", db.ScanFailure, statement, args...)
}

// DropFailures implements [db.DB].
func (d *DB) DropFailures(ctx context.Context, before animalstore.Time, max int) (dropped int, err error) {
	return resultOf(ctx, d.writer.do, func(c *sqlite.Conn) (int, error) {
		return dropFailures(c, "DELETE FROM failures WHERE id IN (SELECT id FROM failures WHERE time < ? ORDER BY time LIMIT ?)", before.Milli(), max)
	})
}
