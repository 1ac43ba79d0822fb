package postgres

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Is reports whether a URL is one for this package.
func Is(url string) bool {
	return strings.HasPrefix(url, "postgres://") || strings.HasPrefix(url, "postgresql://")
}

// CheckURL refuses a URL that cannot be read, without repeating any of it.
func CheckURL(url string) error {
	_, err := parseURL(url)
	return err
}

// Redacted is what may be shown of a URL: where the database is, and nothing of
// who opens it and how.
func Redacted(url string) string {
	config, err := parseURL(url)
	if err != nil {
		return "postgres://…"
	}
	return place(config.ConnConfig)
}

// parseURL reads a URL. Its errors do not repeat it: it may hold a password.
func parseURL(dsn string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(dsn)
	var wrong *pgconn.ParseConfigError
	switch {
	case errors.As(err, &wrong):
		wrong.ConnString = ""
		why := strings.TrimPrefix(wrong.Error(), "cannot parse ``: ")
		why, _, _ = strings.Cut(why, " (") // what follows may quote the URL
		return nil, fmt.Errorf("the PostgreSQL URL cannot be read: %s. Write it like postgres://user@host:5432/database?sslmode=verify-full", why)
	case err != nil:
		return nil, errors.New("the PostgreSQL URL cannot be read. Write it like postgres://user@host:5432/database?sslmode=verify-full")
	}
	if u, err := url.Parse(dsn); err != nil || !u.Query().Has("pool_max_conns") {
		config.MaxConns = usualConns
	}
	return config, nil
}

// place names the database of a configuration, without any credential.
func place(c *pgx.ConnConfig) string {
	hosts := []string{net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))}
	for _, f := range c.Fallbacks {
		host := net.JoinHostPort(f.Host, strconv.Itoa(int(f.Port)))
		if hosts[len(hosts)-1] != host { // the same again, with or without TLS
			hosts = append(hosts, host)
		}
	}
	return "postgres://" + strings.Join(hosts, ",") + "/" + c.Database
}
