package postgres

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// hosts are the hosts of a URL. On its own, pgx tries them in the order of the URL, so
// that every new connection would wait for a first host that accepts connections but
// doesn't respond. They remember which one responded.
type hosts struct {
	config *pgx.ConnConfig
	all    [][]*pgconn.FallbackConfig // of each host: with TLS and without, if both are to be tried
	first  atomic.Int64               // the index of the host to try first

	mu        sync.Mutex
	timelines map[string]string // the latest of each database cluster, by its identifier
}

// newHosts returns the hosts of a config and makes its connections use them.
func newHosts(config *pgxpool.Config) *hosts {
	h := &hosts{config: config.ConnConfig, timelines: map[string]string{}}
	main := &pgconn.FallbackConfig{Host: h.config.Host, Port: h.config.Port, TLSConfig: h.config.TLSConfig}
	for _, f := range append([]*pgconn.FallbackConfig{main}, h.config.Fallbacks...) {
		if n := len(h.all); n > 0 && h.all[n-1][0].Host == f.Host && h.all[n-1][0].Port == f.Port {
			h.all[n-1] = append(h.all[n-1], f)
		} else {
			h.all = append(h.all, []*pgconn.FallbackConfig{f})
		}
	}
	if len(h.all) > 1 {
		config.BeforeConnect = func(_ context.Context, c *pgx.ConnConfig) error {
			first := int(h.first.Load())
			setHosts(c, slices.Concat(h.all[first:], h.all[:first]))
			return nil
		}
		suits := h.config.ValidateConnect
		h.config.ValidateConnect = func(ctx context.Context, c *pgconn.PgConn) error {
			if suits != nil {
				if err := suits(ctx, c); err != nil {
					return err
				}
			}
			return h.checkTimeline(ctx, c)
		}
	}
	return h
}

func setHosts(c *pgx.ConnConfig, all [][]*pgconn.FallbackConfig) {
	flat := slices.Concat(all...)
	c.Host, c.Port, c.TLSConfig, c.Fallbacks = flat[0].Host, flat[0].Port, flat[0].TLSConfig, flat[1:]
}

// find tries all hosts at the same time and makes the first that responds the one to
// try first.
func (h *hosts) find(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type result struct {
		host int
		err  error
	}
	results := make(chan result, len(h.all))
	for i := range h.all {
		go func() { results <- result{i, h.try(ctx, i)} }()
	}
	var err error
	for range h.all {
		r := <-results
		if r.err == nil {
			h.first.Store(int64(r.host))
			return nil
		}
		err = r.err
	}
	return err
}

// try reports whether a host responds.
func (h *hosts) try(ctx context.Context, host int) error {
	c := h.config.Copy()
	setHosts(c, h.all[host:host+1])
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return err
	}
	defer conn.PgConn().Conn().Close()
	_, err = conn.Exec(ctx, "SELECT 1")
	return err
}

// timelineQuery returns what identifies a database cluster, and its timeline, which a
// promotion of a standby raises: the first 8 hexadecimal digits of a log file's name.
const timelineQuery = `SELECT (SELECT system_identifier FROM pg_control_system()),
	CASE WHEN pg_is_in_recovery() THEN '' ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END`

// checkTimeline refuses a former primary: a server that accepts writes although its
// standby was promoted. This process knows that only if it was connected to the new
// primary before. A server that doesn't report its timeline is accepted.
func (h *hosts) checkTimeline(ctx context.Context, c *pgconn.PgConn) error {
	results, err := c.Exec(ctx, timelineQuery).ReadAll()
	if err != nil && ctx.Err() != nil {
		return err
	}
	if err != nil || len(results) != 1 || len(results[0].Rows) != 1 {
		return nil
	}
	cluster, timeline := string(results[0].Rows[0][0]), string(results[0].Rows[0][1])
	if timeline == "" { // a standby, which nothing can be written to
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if latest := h.timelines[cluster]; timeline < latest {
		return fmt.Errorf("this server is a former primary: its timeline is %s, that of the primary %s", timeline, latest)
	}
	h.timelines[cluster] = timeline
	return nil
}
