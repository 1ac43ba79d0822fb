package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"animalstore"
	"animalstore/internal/db"
)

// Checks are the rules for every engine. Statuses are stored as their index in
// animalstore.PetStatuses and animalstore.OrderStatuses.
var Checks = []db.Check{
	{Rule: "every pet has a known status", Query: `SELECT 'pet ' || id || ' has status ' || status FROM pets WHERE status NOT BETWEEN 0 AND 2`},
	{Rule: "every order has a known status", Query: `SELECT 'order ' || id || ' has status ' || status FROM orders WHERE status NOT BETWEEN 0 AND 3`},
	{Rule: "every pet, photo, order and key has a positive id", Query: `
		SELECT 'pet ' || id FROM pets WHERE id < 1 UNION ALL
		SELECT 'photo ' || id FROM photos WHERE id < 1 UNION ALL
		SELECT 'order ' || id FROM orders WHERE id < 1 UNION ALL
		SELECT 'key ' || id FROM keys WHERE id < 1`},
	{Rule: "every pet has a name", Query: `SELECT 'pet ' || id FROM pets WHERE length(name) NOT BETWEEN 1 AND 1024`},
	{Rule: "every pet can be found by its name", Query: `
		SELECT id, name, coalesce(entries, 0) FROM pets LEFT JOIN (
			SELECT pet_id, count(*) AS entries FROM name_entries GROUP BY pet_id) AS found ON pet_id = id`, Find: func(row []any) string {
		if row[2] == int64(len(db.NameEntries(row[1].(string)))) {
			return ""
		}
		return fmt.Sprintf("pet %d", row[0])
	}},
	{Rule: "every entry of a name is one of its pet's name", Query: `
		SELECT entry, pet_id, shared, coalesce(name, '') FROM name_entries LEFT JOIN pets ON id = pet_id`, Find: func(row []any) string {
		entries := db.NameEntries(row[3].(string))
		if slices.ContainsFunc(entries, func(e db.NameEntry) bool { return e.Text == row[0] && int64(e.Shared) == row[2] }) {
			return ""
		}
		return fmt.Sprintf("an entry of pet %d", row[1])
	}},
	{Rule: "every pet's category exists", Query: `
		SELECT 'pet ' || p.id || ' is of category ' || p.category_id
		FROM pets p LEFT JOIN categories c ON c.id = p.category_id WHERE c.id IS NULL`},
	{Rule: "every photo belongs to a pet, which has no more than it may", Query: fmt.Sprintf(`
		SELECT 'photo ' || ph.id || ' is of pet ' || ph.pet_id FROM photos ph LEFT JOIN pets p ON p.id = ph.pet_id WHERE p.id IS NULL UNION ALL
		SELECT 'pet ' || pet_id || ' has ' || count(*) FROM photos GROUP BY pet_id HAVING count(*) > %d`, animalstore.MaxPhotos)},
	{Rule: "every photo has all bytes of its images", Query: `
		SELECT 'photo ' || id || ' should have ' || bytes || ' and ' || thumbnail_bytes || ' bytes' FROM photos ph LEFT JOIN (
			SELECT photo_id, sum(CASE kind WHEN 0 THEN length(data) ELSE 0 END) AS image, sum(CASE kind WHEN 0 THEN 0 ELSE length(data) END) AS thumbnail,
				sum(CASE kind WHEN 0 THEN part + 1 ELSE 0 END) AS image_parts, sum(CASE kind WHEN 0 THEN 1 ELSE 0 END) AS images
			FROM photo_parts GROUP BY photo_id) AS stored ON photo_id = id
		WHERE image IS NULL OR image <> bytes OR thumbnail <> thumbnail_bytes OR image_parts <> images * (images + 1) / 2`},
	{Rule: "every part of an image belongs to a photo", Query: `
		SELECT DISTINCT 'photo ' || photo_id FROM photo_parts LEFT JOIN photos ph ON ph.id = photo_id WHERE ph.id IS NULL`},
	{Rule: "the size of all photos is known", Query: `
		SELECT 'it is ' || actual || ', but ' || known || ' is stored'
		FROM (SELECT coalesce((SELECT sum(bytes + thumbnail_bytes) FROM photos), 0) AS actual, coalesce((SELECT sum(bytes) FROM photo_total), 0) AS known) AS sizes
		WHERE actual <> known`},
	{Rule: "a pet with an open order exists and is pending", Query: `
		SELECT 'pet ' || o.pet_id || CASE WHEN p.id IS NULL THEN ' of order ' || o.id || ' is gone' ELSE ' has open order ' || o.id END
		FROM orders o LEFT JOIN pets p ON p.id = o.pet_id WHERE o.status <= 1 AND (p.id IS NULL OR p.status <> 1)`},
	{Rule: "a pet has at most one open order", Query: `
		SELECT 'pet ' || pet_id || ' has ' || count(*) FROM orders WHERE status <= 1 GROUP BY pet_id HAVING count(*) > 1`},
	{Rule: "a pet that was delivered is sold or gone", Query: `
		SELECT 'pet ' || o.pet_id || ' was delivered by order ' || o.id
		FROM orders o JOIN pets p ON p.id = o.pet_id WHERE o.status = 2 AND p.status <> 2`},
	{Rule: "every key has a known plan and environment, limits and permissions", Query: fmt.Sprintf(`
		SELECT 'key ' || id FROM keys WHERE plan NOT IN ('free', 'pro', 'business', 'enterprise') OR environment NOT IN ('production', 'staging')
			OR per_minute < 1 OR per_day < 1 OR permissions NOT BETWEEN 1 AND %d`, animalstore.AllPermissions)},
	{Rule: "every key has valid networks", Query: `SELECT id, networks FROM keys`, Find: func(row []any) string {
		stored := animalstore.Networks(row[1].(string))
		if valid, err := animalstore.NewNetworks(stored.List()); err == nil && valid == stored {
			return ""
		}
		return fmt.Sprintf("key %d", row[0])
	}},
	{Rule: "every secret, usage and limit belongs to a key", Query: `
		SELECT 'a secret of key ' || s.key_id FROM key_secrets s LEFT JOIN keys k ON k.id = s.key_id WHERE k.id IS NULL UNION ALL
		SELECT 'usage of key ' || u.key_id FROM usage u LEFT JOIN keys k ON k.id = u.key_id WHERE k.id IS NULL UNION ALL
		SELECT 'limits of key ' || l.key_id FROM limit_states l LEFT JOIN keys k ON k.id = l.key_id WHERE k.id IS NULL`},
	{Rule: "every hash has 32 bytes", Query: `
		SELECT 'a secret of key ' || key_id FROM key_secrets WHERE length(hash) <> 32 UNION ALL
		SELECT 'idempotency record ' || token || ' of key ' || key_id FROM idempotency_records WHERE length(body_hash) <> 32`},
	{Rule: "every idempotency record has its result", Query: `SELECT 'idempotency record ' || token || ' of key ' || key_id FROM idempotency_records WHERE result = ''`},
	{Rule: "every event has a known type", Query: fmt.Sprintf(`SELECT 'event ' || id || ' has type ' || type FROM events WHERE type NOT BETWEEN 0 AND %d`, len(animalstore.EventTypes)-1)},
	{Rule: "every event has a known actor", Query: fmt.Sprintf(`SELECT 'event ' || id || ' is by key ' || key_id FROM events WHERE key_id < %d`, db.Service.KeyID)},
	{Rule: "every event is listed with its pet", Query: `
		SELECT id, type, pet_id, subject_id, data FROM events`, Find: func(row []any) string {
		event := animalstore.Event{Type: db.FromStored(animalstore.EventTypes, row[1].(int64)), Data: []byte(row[4].(string))}
		event.Subject = animalstore.EventSubject(event.Type.Resource(), row[3].(int64))
		if event.PetID() == row[2] {
			return ""
		}
		return fmt.Sprintf("event %d is listed with pet %d", row[0], row[2])
	}},
	{Rule: "no event is missing", Query: `
		SELECT 'events ' || min(id) || ' to ' || max(id) || ' should be ' || (max(id) - min(id) + 1) || ', but are ' || count(*)
		FROM events HAVING max(id) - min(id) + 1 <> count(*) OR min(id) < 1`},
	{Rule: "every webhook has a known state, an address and secrets", Query: `
		SELECT 'webhook ' || id FROM webhooks WHERE state NOT BETWEEN 0 AND 2 OR url NOT LIKE 'http%' OR types = '' OR secret NOT LIKE 'whsec__%'
			OR (old_secret <> '' AND old_secret NOT LIKE 'whsec__%')`},
	// The webhook of a delivery may be gone: its deliveries are removed some time
	// later.
	{Rule: "every delivery has a known state and type", Query: fmt.Sprintf(`
		SELECT 'delivery ' || id || ' has state ' || state || ' and type ' || type FROM deliveries
		WHERE state NOT BETWEEN 0 AND 2 OR type NOT BETWEEN -1 AND %d OR (type = -1 AND event_id <> 0) OR event_id < 0 OR tries < 0`, len(animalstore.EventTypes)-1)},
	{Rule: "every event shows its resource", Query: `SELECT 'event ' || id FROM events WHERE data NOT LIKE '{"id":' || subject_id || ',%}'`},
}

// Finding is the result of one check.
type Finding struct {
	Rule       string
	Violations int64
	Examples   []string // the first few violations
	Err        error    // why the check failed to run, such as a damaged file
}

// OK reports whether the rule holds.
func (f Finding) OK() bool { return f.Violations == 0 && f.Err == nil }

// CheckProgress observes a running [Check]. For each rule, Checking is called and
// then Checked, unless the check stops in between.
type CheckProgress interface {
	Checking(rule string)
	Checked(Finding)
}

// maxExamples is how many violations a [Finding] lists.
const maxExamples = 5

// Check runs the engine's checks and all of [Checks], and returns how many it ran
// and how many of them failed. It stops with an error if ctx ends or the database
// becomes unavailable; any other error counts as a failed check.
func Check(ctx context.Context, s db.Source, progress CheckProgress) (ran, failed int, err error) {
	for _, c := range append(s.Checks(), Checks...) {
		progress.Checking(c.Rule)
		n, examples, err := Violations(ctx, s, c, maxExamples)
		if ctx.Err() != nil {
			return ran, failed, ctx.Err()
		}
		if errors.Is(err, db.ErrUnavailable) {
			return ran, failed, err
		}
		f := Finding{Rule: c.Rule, Violations: n, Examples: examples, Err: err}
		progress.Checked(f)
		if ran++; !f.OK() {
			failed++
		}
	}
	return ran, failed, nil
}

// Violations runs one check. It returns the number of violations and the first
// few of them.
func Violations(ctx context.Context, s db.Source, c db.Check, few int) (n int64, first []string, err error) {
	rows, err := s.Query(ctx, c.Query)
	if err != nil {
		return 0, nil, err
	}
	defer rows.Close()
	for rows.Next() {
		values, err := rows.Values()
		if err != nil {
			return n, first, err
		}
		var violation string
		if c.Find == nil {
			violation = values[0].(string)
		} else if violation = c.Find(values); violation == "" {
			continue
		}
		if n++; len(first) < few {
			first = append(first, violation)
		}
	}
	return n, first, rows.Err()
}

// Counts are the numbers of what a store holds.
type Counts struct {
	Pets       int64 `json:"pets"`
	Photos     int64 `json:"photos"`
	PhotoBytes int64 `json:"photoBytes"` // with thumbnails
	Orders     int64 `json:"orders"`
	Categories int64 `json:"categories"`
	Keys       int64 `json:"keys"`
}

// Count counts what a store holds.
func Count(ctx context.Context, s db.Source) (c Counts, err error) {
	for _, q := range []struct {
		to    *int64
		query string
	}{
		{&c.Pets, "SELECT count(*) FROM pets"},
		{&c.Photos, "SELECT count(*) FROM photos"},
		{&c.PhotoBytes, "SELECT bytes FROM photo_total"},
		{&c.Orders, "SELECT count(*) FROM orders"},
		{&c.Categories, "SELECT count(*) FROM categories"},
		{&c.Keys, "SELECT count(*) FROM keys"},
	} {
		if *q.to, err = selectInt(ctx, s, q.query); err != nil {
			return c, err
		}
	}
	return c, nil
}
