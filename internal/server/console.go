package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"animalstore"
	"animalstore/internal/api"
	"animalstore/internal/console"
	"animalstore/internal/db"
	"animalstore/internal/keys"
)

func (s *Server) newConsole(calls *api.Server) http.Handler {
	return console.New(console.Config{
		Environment: s.cfg.Environment,
		Version:     s.cfg.Version,
		Now:         s.cfg.Hooks.Now,
		Server:      calls,
		Sessions:    consoleSessions{s.db},

		RequestTimeout: s.cfg.Hooks.RequestTimeout,
	})
}

// consoleSessions stores the sessions of the console in the database.
type consoleSessions struct{ db db.Sessions }

// CreateSession implements [console.Sessions].
func (c consoleSessions) CreateSession(ctx context.Context, token [32]byte, secret string, expires time.Time) error {
	return c.db.CreateSession(ctx, db.Session{Hash: token, Secret: keys.Hash(secret), ExpiresAt: animalstore.At(expires)})
}

// FindSession implements [console.Sessions].
func (c consoleSessions) FindSession(ctx context.Context, token [32]byte, now time.Time) (secret [32]byte, found bool, err error) {
	s, err := c.db.Session(ctx, token)
	switch {
	case errors.Is(err, db.ErrNotFound):
		return secret, false, nil
	case err != nil:
		return secret, false, err
	}
	return s.Secret, now.Before(s.ExpiresAt.Time), nil
}

// DeleteSession implements [console.Sessions].
func (c consoleSessions) DeleteSession(ctx context.Context, token [32]byte) error {
	return c.db.DeleteSession(ctx, token)
}

// UseForm implements [console.Sessions].
func (c consoleSessions) UseForm(ctx context.Context, token [32]byte, now time.Time) (first bool, err error) {
	err = c.db.UseForm(ctx, token, animalstore.At(now))
	if errors.Is(err, db.ErrExists) {
		return false, nil
	}
	return err == nil, err
}
