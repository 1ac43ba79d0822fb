package db

import "context"

// Check is something that holds in a sound store.
type Check struct {
	Rule  string
	Query string // a line of text for each breach
}

// Checks are those for every engine. Statuses are numbered in the order of
// animalstore.PetStatuses and animalstore.OrderStatuses.
var Checks = []Check{
	{"every pet has a known status", `SELECT 'pet ' || id || ' has status ' || status FROM pets WHERE status NOT BETWEEN 0 AND 2`},
	{"every order has a known status", `SELECT 'order ' || id || ' has status ' || status FROM orders WHERE status NOT BETWEEN 0 AND 3`},
	{"every pet, order and key has a positive id", `
		SELECT 'pet ' || id FROM pets WHERE id < 1 UNION ALL
		SELECT 'order ' || id FROM orders WHERE id < 1 UNION ALL
		SELECT 'key ' || id FROM keys WHERE id < 1`},
	{"every pet has a name", `SELECT 'pet ' || id FROM pets WHERE length(name) NOT BETWEEN 1 AND 1024`},
	{"every pet's category exists", `
		SELECT 'pet ' || p.id || ' is of category ' || p.category_id
		FROM pets p LEFT JOIN categories c ON c.id = p.category_id WHERE c.id IS NULL`},
	{"a pet with an open order is there and pending", `
		SELECT 'pet ' || o.pet_id || CASE WHEN p.id IS NULL THEN ' of order ' || o.id || ' is gone' ELSE ' has the open order ' || o.id END
		FROM orders o LEFT JOIN pets p ON p.id = o.pet_id WHERE o.status <= 1 AND (p.id IS NULL OR p.status <> 1)`},
	{"a pet has at most one open order", `
		SELECT 'pet ' || pet_id || ' has ' || count(*) FROM orders WHERE status <= 1 GROUP BY pet_id HAVING count(*) > 1`},
	{"a pet that was delivered is sold or gone", `
		SELECT 'pet ' || o.pet_id || ' was delivered by order ' || o.id
		FROM orders o JOIN pets p ON p.id = o.pet_id WHERE o.status = 2 AND p.status <> 2`},
	{"every key has a known plan and environment, limits and permissions", `
		SELECT 'key ' || id FROM keys WHERE plan NOT IN ('free', 'pro', 'business', 'enterprise') OR environment NOT IN ('production', 'staging')
			OR per_minute < 1 OR per_day < 1 OR permissions NOT BETWEEN 1 AND 7`},
	{"every secret, usage and limit belongs to a key", `
		SELECT 'a secret of key ' || s.key_id FROM key_secrets s LEFT JOIN keys k ON k.id = s.key_id WHERE k.id IS NULL UNION ALL
		SELECT 'usage of key ' || u.key_id FROM usage u LEFT JOIN keys k ON k.id = u.key_id WHERE k.id IS NULL UNION ALL
		SELECT 'limits of key ' || l.key_id FROM limit_states l LEFT JOIN keys k ON k.id = l.key_id WHERE k.id IS NULL`},
	{"every hash has 32 bytes", `
		SELECT 'a secret of key ' || key_id FROM key_secrets WHERE length(hash) <> 32 UNION ALL
		SELECT 'idempotency record ' || token || ' of key ' || key_id FROM answers WHERE length(body_hash) <> 32`},
	{"every idempotency record has its answer", `SELECT 'idempotency record ' || token || ' of key ' || key_id FROM answers WHERE answer = ''`},
}

// Breaches runs a check. It returns how many breaches there are, and the first
// few of them.
func Breaches(ctx context.Context, s Source, c Check, few int) (n int64, first []string, err error) {
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
		if n++; len(first) < few {
			first = append(first, values[0].(string))
		}
	}
	return n, first, rows.Err()
}
