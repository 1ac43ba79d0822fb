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

// Parameters: $1 is the upper bound of ids, $2 the limit and $3 the time. A list orders by
// both columns of its index, like those of pets. A key has at most 1,000 failures, so its
// index is enough for every other filter too.
const (
	selectFailures = "SELECT " + db.FailureColumns + " FROM failures WHERE time >= $3"
	beforeRange    = "coalesce((SELECT id FROM failures WHERE time < $4 ORDER BY time DESC LIMIT 1), 0)"

	listFailures      = selectFailures + " AND id < $1 AND id > " + beforeRange + " ORDER BY id DESC LIMIT $2"
	listFailuresByKey = "SELECT * FROM (SELECT " + db.FailureColumns + " FROM failures WHERE (key_id, id) < ($4, $1) AND key_id >= $4 ORDER BY key_id DESC, id DESC LIMIT 1000) AS newest" +
		" WHERE time >= $3 AND ($5 = '' OR code = $5) AND ($6 = '' OR request_id = $6) ORDER BY key_id DESC, id DESC LIMIT $2"
	listFailuresByRequest = selectFailures + " AND (request_id, id) < ($5, $1) AND (request_id, id) > ($5, " + beforeRange + ") AND ($6 = '' OR code = $6) ORDER BY request_id DESC, id DESC LIMIT $2"
	listFailuresByCode    = selectFailures + " AND (code, id) < ($5, $1) AND (code, id) > ($5, " + beforeRange + ") ORDER BY code DESC, id DESC LIMIT $2"
)

// Failures implements [db.DB].
func (d *DB) Failures(ctx context.Context, q db.FailureQuery) ([]animalstore.Failure, error) {
	query, args := failureListQuery(q)
	return list(ctx, d, "select failures", db.ScanFailure, query, args...)
}

func failureListQuery(q db.FailureQuery) (query string, args []any) {
	args = []any{db.UpperBound(q.Before), q.Limit, q.Since.Milli()}
	switch {
	case q.KeyID != 0:
		return listFailuresByKey, append(args, q.KeyID, string(q.Code), q.RequestID)
	case q.RequestID != "":
		return listFailuresByRequest, append(args, q.Oldest(), q.RequestID, string(q.Code))
	case q.Code != "":
		return listFailuresByCode, append(args, q.Oldest(), string(q.Code))
	}
	return listFailures, append(args, q.Oldest())
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
