package postgres

import (
	"context"
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

// Is reports whether a URL is a PostgreSQL URL.
func Is(url string) bool {
	return strings.HasPrefix(url, "postgres://") || strings.HasPrefix(url, "postgresql://")
}

// CheckURL returns an error if a URL can't be parsed. The error doesn't contain the URL.
func CheckURL(url string) error {
	_, err := parseURL(url)
	return err
}

// Redacted returns a URL without credentials and parameters, for messages.
func Redacted(url string) string {
	config, err := parseURL(url)
	if err != nil {
		return "postgres://…"
	}
	return location(config.ConnConfig)
}

// ForTools returns a URL that PostgreSQL's own programs accept, without a password.
func ForTools(dsn string) string {
	u, err := url.Parse(dsn)
	if err != nil {
		return Redacted(dsn)
	}
	if u.User != nil {
		u.User = url.User(u.User.Username())
	}
	query := u.Query()
	for name := range query {
		if strings.HasPrefix(name, "pool_") || strings.Contains(name, "password") || strings.HasPrefix(name, "default_query_") ||
			strings.HasSuffix(name, "_cache_capacity") {
			query.Del(name)
		}
	}
	u.RawQuery = query.Encode()
	return u.String()
}

// parseURL parses a URL. Its errors don't contain it, because of the password.
func parseURL(dsn string) (*pgxpool.Config, error) {
	config, err := pgxpool.ParseConfig(dsn)
	var wrong *pgconn.ParseConfigError
	switch {
	case errors.As(err, &wrong):
		wrong.ConnString = ""
		why := strings.TrimPrefix(wrong.Error(), "cannot parse ``: ")
		why, _, _ = strings.Cut(why, " (") // the rest may quote the URL
		return nil, fmt.Errorf("the PostgreSQL URL cannot be read: %s. Write it like postgres://user@host:5432/database?sslmode=verify-full", why)
	case err != nil:
		return nil, errors.New("the PostgreSQL URL cannot be read. Write it like postgres://user@host:5432/database?sslmode=verify-full")
	}
	if u, err := url.Parse(dsn); err != nil || !u.Query().Has("pool_max_conns") {
		config.MaxConns = defaultConns
	}
	dial := config.ConnConfig.DialFunc
	config.ConnConfig.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return uncancelled{c}, nil
	}
	return config, nil
}

// uncancelled is a connection whose statements pgx can't cancel when it gives them up. In a
// commit that waits for its standby, that would end the wait: the change would be visible,
// and then be lost if the standby is promoted. pgx sends the request to the address of the
// connection, so this one has none that can be dialled.
type uncancelled struct{ net.Conn }

func (c uncancelled) RemoteAddr() net.Addr { return undialled{c.Conn.RemoteAddr()} }

type undialled struct{ net.Addr }

// Network implements [net.Addr]. net.Dial refuses an unknown network at once.
func (undialled) Network() string { return "undialled" }

// location returns the URL of a database without credentials.
func location(c *pgx.ConnConfig) string {
	hosts := []string{net.JoinHostPort(c.Host, strconv.Itoa(int(c.Port)))}
	for _, f := range c.Fallbacks {
		host := net.JoinHostPort(f.Host, strconv.Itoa(int(f.Port)))
		if hosts[len(hosts)-1] != host { // the same again, with or without TLS
			hosts = append(hosts, host)
		}
	}
	return "postgres://" + strings.Join(hosts, ",") + "/" + c.Database
}
