package server

import (
	"context"
	"errors"
	"net/http"
	"time"

	"animalstore"
	"animalstore/internal/api"
	"animalstore/internal/assistant"
	"animalstore/internal/console"
	"animalstore/internal/db"
	"animalstore/internal/keys"
	"animalstore/internal/pages"
)

// newConsole returns the console, or nil if it is disabled. The API doesn't exist yet
// at this point; it serves the console and is called by it.
func (s *Server) newConsole() http.Handler {
	if s.cfg.NoConsole {
		return nil
	}
	return console.New(console.Config{
		Environment: s.cfg.Environment,
		Version:     s.cfg.Version,
		Assets:      pages.AssetsPrefix(),
		Now:         s.cfg.Hooks.Now,
		Server:      consoleServer{func() *api.Server { return s.handler }},
		Sessions:    consoleSessions{s.db},

		RequestTimeout: s.cfg.Hooks.RequestTimeout,
	})
}

// newAssistant returns what serves /mcp, or nil if it is disabled.
func (s *Server) newAssistant() api.Assistant {
	if s.cfg.NoMCP {
		return nil
	}
	return assistant.New(s.cfg.Version, s.cfg.Log).Respond
}

// consoleServer gives the console access to the API.
type consoleServer struct{ api func() *api.Server }

// ServeAPI implements [console.Server].
func (c consoleServer) ServeAPI(w http.ResponseWriter, r *http.Request, secret *[32]byte) {
	if secret == nil {
		c.api().ServeHTTP(w, r)
		return
	}
	c.api().ServeAs(w, r, *secret)
}

// KeyOf implements [console.Server].
func (c consoleServer) KeyOf(r *http.Request, secret [32]byte) (*animalstore.Key, error) {
	return c.api().KeyOf(r, secret)
}

// ChargeAddress implements [console.Server].
func (c consoleServer) ChargeAddress(r *http.Request) (int64, error) { return c.api().ChargeAddress(r) }

// PetETag implements [console.Server].
func (c consoleServer) PetETag(pet animalstore.Pet) string { return api.PetETag(pet) }

// OrderETag implements [console.Server].
func (c consoleServer) OrderETag(order animalstore.Order) string { return api.OrderETag(order) }

// IsHTTPS implements [console.Server].
func (c consoleServer) IsHTTPS(r *http.Request) bool { return c.api().IsHTTPS(r) }

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
