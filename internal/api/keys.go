package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/keys"
	"animalstore/internal/ratelimit"
	"animalstore/internal/strictjson"
)

// keyWithSecret is a key in the only response that shows its secret.
type keyWithSecret struct {
	animalstore.Key
	Secret string `json:"secret"`
}

// listKeys serves GET /v1/keys.
func (s *Server) listKeys(w http.ResponseWriter, r *request) error {
	list := func(ctx context.Context, _ noFilters, page db.Page) ([]animalstore.Key, error) {
		all, err := s.DB.Keys(ctx, page)
		for i := range all {
			all[i] = all[i].At(s.Now())
		}
		return all, err
	}
	return serveList(w, r, "/v1/keys", parseNoFilters, list, func(k *animalstore.Key) int64 { return k.ID })
}

// createKey serves POST /v1/keys. The key is for this server's environment.
func (s *Server) createKey(w http.ResponseWriter, r *request) error {
	in, err := decode(r, func(body []byte) (animalstore.NewKey, error) {
		key, err := strictjson.DecodeNewKey(body)
		key.Environment = s.Environment
		return key, err
	})
	if err != nil {
		return err
	}
	if err := animalstore.ValidateExpiry(in.ExpiresAt, s.Now()); err != nil {
		return err
	}
	secret := keys.Mint(in.Environment)
	key, err := s.DB.CreateKey(r.Context(), in, keys.Hash(secret), animalstore.At(s.Now()))
	if err != nil {
		return err
	}
	setLocation(w, "/v1/keys", key.ID)
	return writeSecret(w, http.StatusCreated, keyWithSecret{key, secret})
}

// getKey serves GET /v1/keys/{keyId}.
func (s *Server) getKey(w http.ResponseWriter, r *request) error {
	key, err := atPath(r, &keyKind, s.DB.Key)
	if err != nil {
		return err
	}
	return s.writeKey(w, r, key)
}

// updateKey serves PATCH /v1/keys/{keyId}.
func (s *Server) updateKey(w http.ResponseWriter, r *request) error {
	patch, err := decodeUnchecked(r, strictjson.DecodeKeyPatch)
	if err != nil {
		return err
	}
	if err := patch.Validate(s.Now()); err != nil {
		return err
	}
	key, err := s.changeKey(r, patch.Apply)
	if err != nil {
		return err
	}
	return s.writeKey(w, r, key)
}

// revokeKey serves DELETE /v1/keys/{keyId}.
func (s *Server) revokeKey(w http.ResponseWriter, r *request) error {
	_, err := s.changeKey(r, func(k *animalstore.Key, now time.Time) error {
		k.Revoke(animalstore.At(now))
		return nil
	})
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// unbanKey serves POST /v1/keys/{keyId}/unban. The header Ban-Lifted says whether
// the key was banned.
func (s *Server) unbanKey(w http.ResponseWriter, r *request) error {
	before, err := atPath(r, &keyKind, s.DB.Key)
	if err != nil {
		return err
	}
	status, err := s.Limiter.Status(r.Context(), &before)
	if err != nil {
		return err
	}
	// Without Redis, another instance may have banned the key.
	saved, err := s.DB.LimitState(r.Context(), before.ID)
	if err != nil {
		return err
	}
	elsewhere := ratelimit.StatusOf(saved, &before, s.Now())
	key, err := s.changeKey(r, func(k *animalstore.Key, now time.Time) error {
		k.Unban(animalstore.At(now), status.BannedAt)
		k.Unban(animalstore.At(now), elsewhere.BannedAt)
		return nil
	})
	if err != nil {
		return err
	}
	lifted := !status.BannedUntil.IsZero() || !elsewhere.BannedUntil.IsZero()
	w.Header().Set("Ban-Lifted", strconv.FormatBool(lifted))
	return s.writeKey(w, r, key)
}

// changeKey changes the key in the path, unless that would leave no key that can
// manage keys, or lock the caller out.
func (s *Server) changeKey(r *request, change func(*animalstore.Key, time.Time) error) (animalstore.Key, error) {
	id, err := keyKind.pathID(r)
	if err != nil {
		return animalstore.Key{}, err
	}
	now := s.Now()
	key, err := s.DB.UpdateKey(r.Context(), id, animalstore.At(now), func(k *animalstore.Key, otherAdmin bool) error {
		if err := r.checkIfMatch(keyTag(k.At(now))); err != nil {
			return err
		}
		before := *k
		if err := change(k, now); err != nil {
			return err
		}
		if before.Manages(now) && !k.Manages(now) && !otherAdmin {
			return animalstore.Errorf(animalstore.LastAdminKey, "this is the last key that can manage keys: give another key the permission admin first")
		}
		if k.ID == r.key.ID && s.checkAccess(r.Request, &before) == nil && s.checkAccess(r.Request, k) != nil {
			return animalstore.Errorf(animalstore.WouldLockOut, "this is the key you are using, and this would end your access: use another key to do this")
		}
		return nil
	})
	return key, keyKind.notFound(err)
}

// Grace periods of a rotated secret, in seconds.
const (
	defaultGrace = 24 * 60 * 60
	maxGrace     = 90 * 24 * 60 * 60
)

// rotateKey serves POST /v1/keys/{keyId}/rotate. The body is optional.
func (s *Server) rotateKey(w http.ResponseWriter, r *request) error {
	grace, err := decodeGrace(r)
	if err != nil {
		return err
	}
	key, err := atPath(r, &keyKind, s.DB.Key)
	if err != nil {
		return err
	}
	secret := keys.Mint(key.Environment)
	now := s.Now()
	until := animalstore.At(now.Add(grace))
	id := key.ID
	rotation := db.KeyRotation{Hash: keys.Hash(secret), At: animalstore.At(now), OldUntil: until}
	key, err = s.DB.RotateKey(r.Context(), id, rotation, func(k *animalstore.Key) error {
		return r.checkIfMatch(keyTag(k.At(now)))
	})
	if err != nil {
		return keyKind.notFound(err)
	}
	return writeSecret(w, http.StatusOK, keyWithSecret{key.At(now), secret})
}

// keyTag is the ETag of a key. It leaves out lastUsedAt, which every request with
// the key changes: otherwise an If-Match would hardly ever match. Bans are included:
// clients must see them, and they rarely change.
func keyTag(key animalstore.Key) string {
	key.LastUsedAt = animalstore.Time{}
	return etagOf(encode(key))
}

func (s *Server) writeKey(w http.ResponseWriter, r *request, key animalstore.Key) error {
	key = key.At(s.Now())
	return taggedEntity(encode(key), keyTag(key)).write(w, r, http.StatusOK)
}

// writeSecret writes a key or a webhook with its secret, which no cache may store.
func writeSecret(w http.ResponseWriter, status int, withSecret any) error {
	w.Header().Set("Cache-Control", "no-store")
	return writeJSON(w, status, withSecret)
}
