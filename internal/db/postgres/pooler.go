package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"animalstore/internal/db"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

const (
	// comparedConns is how many connections checkSession compares. Two aren't enough if
	// the pooler is busy, or if several poolers share a port.
	comparedConns = 6
	// checkTimeout limits the checks, which wait if a pooler has no free connection.
	checkTimeout = 2 * startTimeout
)

// checkPooler refuses a pooler, such as PgBouncer, that shares its connections between
// clients or drops the settings that we send. With either, the store would seem to work
// until it relies on a lock or a timeout.
func checkPooler(ctx context.Context, h *hosts) error {
	c := h.config.Copy()
	c.ConnectTimeout = max(c.ConnectTimeout, startTimeout)
	c.DefaultQueryExecMode = pgx.QueryExecModeSimpleProtocol // a shared connection may lack what we prepared
	conn, err := connectToOne(ctx, h, c)
	if err != nil {
		return describeConnectError(err)
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	defer conn.Close(ctx)
	if err = checkSession(ctx, conn); err == nil {
		err = checkSettings(ctx, conn, c.RuntimeParams)
	}
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return &db.OpenError{Reason: db.Unreachable,
			Text: "PostgreSQL does not respond, or a pooler has no connection left: see docs/scaling.md"}
	}
	return err
}

// connectToOne connects to the first host that accepts c, and limits c to it.
func connectToOne(ctx context.Context, h *hosts, c *pgx.ConnConfig) (conn *pgx.Conn, err error) {
	first := int(h.first.Load())
	var all []error
	for _, host := range slices.Concat(h.all[first:], h.all[:first]) {
		setHosts(c, [][]*pgconn.FallbackConfig{host})
		if conn, err = pgx.ConnectConfig(ctx, c); err == nil {
			return conn, nil
		}
		all = append(all, err)
	}
	return nil, errors.Join(all...)
}

// checkSession refuses a pooler that picks a server connection for each transaction. Then a
// client's connection changes, or two clients have the same one.
func checkSession(ctx context.Context, conn *pgx.Conn) error {
	seen := map[uint32]bool{}
	for {
		first, err := serverPID(ctx, conn)
		if err != nil || first == conn.PgConn().PID() {
			return err // no pooler: one gives its clients ids of its own
		}
		second, err := serverPID(ctx, conn)
		if err != nil {
			return err
		}
		if first != second || seen[first] {
			return errors.New("PgBouncer, or another pooler, shares its connections between clients: " +
				"set its pool_mode to session; see docs/scaling.md")
		}
		if seen[first] = true; len(seen) == comparedConns {
			return nil
		}
		if conn, err = pgx.ConnectConfig(ctx, conn.Config()); err != nil {
			return describeConnectError(err)
		}
		defer conn.Close(ctx)
	}
}

func serverPID(ctx context.Context, conn *pgx.Conn) (pid uint32, err error) {
	err = conn.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid)
	return pid, failed("query the server's process", err)
}

// checkSettings refuses a server that didn't get the settings we sent. A limit may differ:
// the operator can set it on the role.
func checkSettings(ctx context.Context, conn *pgx.Conn, sent map[string]string) error {
	names := slices.AppendSeq(slices.Clone(limits), maps.Keys(fixedSettings))
	rows, _ := conn.Query(ctx, "SELECT name, current_setting(name) FROM unnest($1::text[]) AS name ORDER BY name", names)
	var lost []string
	var name, got string
	_, err := pgx.ForEachRow(rows, []any{&name, &got}, func() error {
		want, fixed := fixedSettings[name]
		if fixed && got != want || !fixed && isPositive(sent[name]) && !isPositive(got) {
			lost = append(lost, name)
		}
		return nil
	})
	if err != nil {
		return failed("query the settings", err)
	}
	if len(lost) > 0 {
		return fmt.Errorf("PgBouncer, or another pooler, drops settings that animalstore sends (%s): "+
			"set them on the role; see docs/scaling.md", strings.Join(lost, ", "))
	}
	return nil
}

// isPositive reports whether a limit such as 1920 or 5s is one: 0 means no limit.
func isPositive(limit string) bool { return strings.ContainsAny(limit, "123456789") }
