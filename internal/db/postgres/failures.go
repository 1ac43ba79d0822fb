package postgres

import (
	"context"

	"animalstore"
	"animalstore/internal/db"

	"github.com/jackc/pgx/v5"
)

const (
	insertFailures = `INSERT INTO failures (time, request_id, key_id, method, route, path, status, code, message, duration_ms)
		SELECT * FROM unnest($1::bigint[], $2::text[], $3::bigint[], $4::text[], $5::text[], $6::text[], $7::bigint[], $8::text[], $9::text[], $10::bigint[])
		ON CONFLICT DO NOTHING`
	dropFailuresOfKeys = `DELETE FROM failures f USING (SELECT DISTINCT unnest($1::bigint[]) AS key_id) AS k
		CROSS JOIN LATERAL (SELECT id FROM failures WHERE (key_id, id) <= (k.key_id, 9223372036854775807) AND key_id >= k.key_id
			ORDER BY key_id DESC, id DESC OFFSET $2 LIMIT 1) AS first
		WHERE f.key_id = k.key_id AND f.id <= first.id`
	countFailures = "UPDATE failure_total SET stored = stored + $1 WHERE id = 1 RETURNING stored"
)

// AddFailures implements [db.DB].
func (d *DB) AddFailures(ctx context.Context, failures []animalstore.Failure, limits db.FailureLimits) error {
	var times, keys, statuses, durations []int64
	var requests, methods, routes, paths, codes, messages []string
	for i := range failures {
		f := &failures[i]
		route, path := db.StoredRoute(f)
		times, keys, statuses, durations = append(times, f.Time.Milli()), append(keys, f.KeyID), append(statuses, int64(f.Status)), append(durations, f.DurationMs)
		requests, methods, routes, paths = append(requests, f.RequestID), append(methods, f.Method), append(routes, route), append(paths, path)
		codes, messages = append(codes, string(f.Code)), append(messages, f.Message)
	}
	return d.write(ctx, func(ctx context.Context, tx pgx.Tx) error {
		if err := failuresLock.take(ctx, tx); err != nil {
			return err
		}
		inserted, err := tx.Exec(ctx, insertFailures, times, requests, keys, methods, routes, paths, statuses, codes, messages, durations)
		if err != nil {
			return failed("insert failures", err)
		}
		dropped, err := tx.Exec(ctx, dropFailuresOfKeys, keys, limits.PerKey)
		if err != nil {
			return failed("drop failures of keys", err)
		}
		var total int64
		if err := tx.QueryRow(ctx, countFailures, inserted.RowsAffected()-dropped.RowsAffected()).Scan(&total); err != nil {
			return failed("count failures", err)
		}
		if total <= int64(limits.Total) {
			return nil
		}
		_, err = dropFailures(ctx, tx, "DELETE FROM failures WHERE id = ANY (ARRAY(SELECT id FROM failures ORDER BY id LIMIT $1))", total-int64(limits.Total))
		return err
	})
}

// dropFailures runs a statement that deletes failures, and counts them. The caller holds
// the lock.
func dropFailures(ctx context.Context, tx pgx.Tx, query string, args ...any) (dropped int, err error) {
	tag, err := tx.Exec(ctx, query, args...)
	if err != nil {
		return 0, failed("drop failures", err)
	}
	_, err = tx.Exec(ctx, countFailures, -tag.RowsAffected())
	return int(tag.RowsAffected()), failed("count failures", err)
}

// A list orders by both columns of its index, like those of pets, and the zeros keep the
// planner from reading along the time. A key has few failures, so its index is enough for
// every other filter too.
var listFailures = db.FailureLists{
	All: "SELECT " + db.FailureColumns + ` FROM failures
		WHERE id < $1 AND time >= $3
		AND id > coalesce((SELECT id FROM failures WHERE time < $4 ORDER BY time DESC LIMIT 1), 0)
		ORDER BY id DESC LIMIT $2`,
	ByKey: "SELECT " + db.FailureColumns + ` FROM failures WHERE (key_id, id) < ($5, $1) AND time + 0 >= $3
		AND (key_id, id) > ($5, coalesce((SELECT id FROM failures WHERE time < $4 ORDER BY time DESC LIMIT 1), 0))
		AND ($6 = '' OR request_id = $6) AND ($7 = '' OR code = $7) ORDER BY key_id DESC, id DESC LIMIT $2`,
	ByRequest: "SELECT " + db.FailureColumns + ` FROM failures WHERE (request_id, id) < ($5, $1) AND time + 0 >= $3
		AND (request_id, id) > ($5, coalesce((SELECT id FROM failures WHERE time < $4 ORDER BY time DESC LIMIT 1), 0))
		AND ($6 = '' OR code = $6) ORDER BY request_id DESC, id DESC LIMIT $2`,
	ByCode: "SELECT " + db.FailureColumns + ` FROM failures WHERE (code, id) < ($5, $1) AND time + 0 >= $3
		AND (code, id) > ($5, coalesce((SELECT id FROM failures WHERE time < $4 ORDER BY time DESC LIMIT 1), 0))
		ORDER BY code DESC, id DESC LIMIT $2`,
}

// Failures implements [db.DB].
func (d *DB) Failures(ctx context.Context, q animalstore.FailureQuery, page db.Page) ([]animalstore.Failure, error) {
	statement, args := listFailures.Statement(q, page)
	return list(ctx, d, "select failures", db.ScanFailure, statement, args...)
}

// DropFailures implements [db.DB].
func (d *DB) DropFailures(ctx context.Context, before animalstore.Time, max int) (dropped int, err error) {
	err = d.write(ctx, func(ctx context.Context, tx pgx.Tx) (err error) {
		if err := failuresLock.take(ctx, tx); err != nil {
			return err
		}
		dropped, err = dropFailures(ctx, tx, "DELETE FROM failures WHERE id = ANY (ARRAY(SELECT id FROM failures WHERE time < $1 ORDER BY time LIMIT $2))", before.Milli(), max)
		return err
	})
	return dropped, err
}
