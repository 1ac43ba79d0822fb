package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// hosts are the hosts of a URL. On its own, pgx tries them in the order of the URL, so
// that every new connection would wait for a first host that accepts connections but
// doesn't respond, or use one that is no longer the primary. They remember which one is.
type hosts struct {
	config *pgx.ConnConfig
	all    [][]*pgconn.FallbackConfig // of each host: with TLS and without, if both are to be tried
	first  atomic.Int64               // the index of the host to try first
	log    *slog.Logger

	mu          sync.Mutex
	cluster     string // identifies the database cluster
	timeline    string // the latest that was seen of it
	refused     string // the former primary that was logged last
	onPromotion func() // drops the connections to the former primary
}

// newHosts returns the hosts of a config and makes its connections use them.
func newHosts(config *pgxpool.Config, log *slog.Logger) *hosts {
	h := &hosts{config: config.ConnConfig, log: log}
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
			h.order(c)
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

// order makes a config try the primary first.
func (h *hosts) order(c *pgx.ConnConfig) {
	first := int(h.first.Load())
	setHosts(c, slices.Concat(h.all[first:], h.all[:first]))
}

func setHosts(c *pgx.ConnConfig, all [][]*pgconn.FallbackConfig) {
	flat := slices.Concat(all...)
	c.Host, c.Port, c.TLSConfig, c.Fallbacks = flat[0].Host, flat[0].Port, flat[0].TLSConfig, flat[1:]
}

// primary is a host of the URL, by its index, while it has a timeline. "" means that it
// isn't known.
type primary struct {
	host     int64
	timeline string
}

// primary returns the one that is used.
func (h *hosts) primary() primary { return primary{h.first.Load(), h.latest()} }

// find asks all hosts at the same time, and makes the one with the latest timeline the one
// to try first.
func (h *hosts) find(ctx context.Context) (primary, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	known := h.latest()
	responses := make(chan response, len(h.all))
	for i := range h.all {
		go func() { responses <- h.ask(ctx, i) }()
	}
	best := latestOf(responses, len(h.all), known)
	if best.err != nil {
		return primary{}, best.err
	}
	h.first.Store(int64(best.host))
	return primary{int64(best.host), best.timeline}, nil
}

// response is what a host responded to find.
type response struct {
	host     int
	timeline string
	err      error
}

// findPause is how long find waits for the other hosts once one has responded: after a
// failover, the former primary may be nearer than the new one.
const findPause = time.Second

// latestOf returns the response with the latest timeline, of several that of the host that
// the URL names first. It doesn't wait for others if that is later than the known one.
func latestOf(responses <-chan response, hosts int, known string) response {
	best := response{err: context.DeadlineExceeded}
	var enough <-chan time.Time
	for range hosts {
		select {
		case r := <-responses:
			later := r.timeline > best.timeline || r.timeline == best.timeline && r.host < best.host
			if best.err != nil || r.err == nil && later {
				best = r
			}
		case <-enough:
			return best
		}
		switch {
		case best.err != nil:
		case known != "" && best.timeline > known:
			return best
		case enough == nil:
			enough = time.After(findPause)
		}
	}
	return best
}

func (h *hosts) ask(ctx context.Context, host int) response {
	c := h.config.Copy()
	setHosts(c, h.all[host:host+1])
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return response{host, "", err}
	}
	defer conn.PgConn().Conn().Close()
	_, timeline, err := timelineOf(ctx, conn.PgConn())
	return response{host, timeline, err}
}

// commit makes a commit that changes nothing, and returns nil once it is confirmed.
func (h *hosts) commit(ctx context.Context) error {
	c := h.config.Copy()
	h.order(c)
	conn, err := pgx.ConnectConfig(ctx, c)
	if err != nil {
		return err
	}
	defer conn.PgConn().Conn().Close()
	forgetWarnings(conn)
	_, err = conn.Exec(ctx, "SELECT "+emptyCommit)
	return settled(conn, "commit", err)
}

// timelineQuery returns what identifies a database cluster, and its timeline, which a
// promotion of a standby raises: the first 8 hexadecimal digits of a log file's name.
const timelineQuery = `SELECT (SELECT system_identifier FROM pg_control_system()),
	CASE WHEN pg_is_in_recovery() THEN '' ELSE left(pg_walfile_name(pg_current_wal_lsn()), 8) END`

// timelineOf returns no timeline for a standby, which nothing can be written to, and for a
// server that doesn't report it.
func timelineOf(ctx context.Context, c *pgconn.PgConn) (cluster, timeline string, err error) {
	results, err := c.Exec(ctx, timelineQuery).ReadAll()
	switch {
	case err != nil && (ctx.Err() != nil || c.IsClosed()):
		return "", "", err
	case err != nil || len(results) != 1 || len(results[0].Rows) != 1:
		return "", "", nil
	}
	row := results[0].Rows[0]
	return string(row[0]), string(row[1]), nil
}

// timelineKey marks a connection with the timeline that its server had.
const timelineKey = "animalstore timeline"

// checkTimeline refuses a former primary: a server that accepts writes although its
// standby was promoted. This process knows that only if it has seen the new primary.
func (h *hosts) checkTimeline(ctx context.Context, c *pgconn.PgConn) error {
	cluster, timeline, err := timelineOf(ctx, c)
	if err != nil || timeline == "" {
		return err
	}
	c.CustomData()[timelineKey] = timeline
	address := c.Conn().RemoteAddr().String()
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case cluster != h.cluster:
		h.cluster, h.timeline = cluster, timeline
	case timeline == h.timeline:
		h.refused = ""
	case timeline > h.timeline:
		h.log.Warn("PostgreSQL has a new primary", "address", address, "timeline", timeline, "before", h.timeline)
		h.timeline, h.refused = timeline, ""
		if h.onPromotion != nil {
			h.onPromotion()
		}
	case timeline < h.timeline:
		if h.refused != address {
			h.refused = address
			h.log.Warn("this PostgreSQL server is a former primary: it isn't used, because it lacks changes and would lose others",
				"address", address, "timeline", timeline, "primary", h.timeline)
		}
		return fmt.Errorf("this server is a former primary: its timeline is %s, that of the primary %s", timeline, h.timeline)
	}
	return nil
}

func (h *hosts) setOnPromotion(f func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.onPromotion = f
}

// latest returns the latest timeline that was seen, if any.
func (h *hosts) latest() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.timeline
}
