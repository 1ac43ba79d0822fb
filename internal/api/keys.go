package api

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/keys"

	"github.com/go-json-experiment/json/jsontext"
)

// keyWithSecret is a key at the one time its secret is shown.
type keyWithSecret struct {
	animalstore.Key
	Secret string `json:"secret"`
}

// listKeys serves GET /v1/keys.
func (s *Server) listKeys(w http.ResponseWriter, r *request) error {
	q, err := parseListQuery("/v1/keys", r.URL.RawQuery)
	if err != nil {
		return err
	}
	before, err := q.before()
	if err != nil {
		return err
	}
	all, err := s.db.Keys(r.Context(), db.KeyQuery{Before: before, Limit: q.limit + 1})
	if err != nil {
		return err
	}
	return writePage(w, r, q, all, func(k *animalstore.Key) int64 { return k.ID })
}

// createKey serves POST /v1/keys. The key is for the deployment that makes it.
func (s *Server) createKey(w http.ResponseWriter, r *request) error {
	in := animalstore.NewKey{
		Plan:        animalstore.PlanFree,
		Permissions: animalstore.Read | animalstore.Write,
		Environment: s.keys.Environment(),
	}
	err := decode(r,
		required("name", readString(&in.Name)),
		optional("plan", readPlan(&in.Plan)),
		optional("limits", readLimits(&in.Limits)),
		optional("permissions", readPermissions(&in.Permissions)),
		optional("expiresAt", s.readFuture(&in.ExpiresAt)))
	if err != nil {
		return err
	}
	if err := in.Validate(); err != nil {
		return err
	}
	secret := keys.Mint(in.Environment)
	key, err := s.db.CreateKey(r.Context(), in, keys.Hash(secret), animalstore.At(s.now()))
	if err != nil {
		return err
	}
	w.Header()["Location"] = []string{"/v1/keys/" + strconv.FormatInt(key.ID, 10)}
	return writeSecret(w, http.StatusCreated, keyWithSecret{key, secret})
}

// getKey serves GET /v1/keys/{keyId}.
func (s *Server) getKey(w http.ResponseWriter, r *request) error {
	return s.withKey(w, r, func(id int64) (animalstore.Key, error) {
		return s.db.Key(r.Context(), id)
	})
}

// updateKey serves PATCH /v1/keys/{keyId}.
func (s *Server) updateKey(w http.ResponseWriter, r *request) error {
	var in animalstore.Key
	seen, err := decodePatch(r,
		optional("name", readString(&in.Name)),
		optional("plan", readPlan(&in.Plan)),
		optional("limits", readLimits(&in.Limits)),
		optional("permissions", readPermissions(&in.Permissions)),
		optional("expiresAt", s.readFuture(&in.ExpiresAt)))
	if err != nil {
		return err
	}
	if err := checkKeyPatch(in, seen); err != nil {
		return err
	}
	return s.withKey(w, r, func(id int64) (animalstore.Key, error) {
		return s.changeKey(r.Context(), id, func(k *animalstore.Key) error {
			if err := k.CheckChangeable(); err != nil {
				return err
			}
			return patchKey(k, &in, seen)
		})
	})
}

// checkKeyPatch refuses what is wrong whichever key it is meant for, so that it
// is before there is any talk of that key.
func checkKeyPatch(in animalstore.Key, seen map[string]bool) error {
	if !seen["name"] {
		in.Name = "as it is"
	}
	if !seen["permissions"] {
		in.Permissions = animalstore.Read
	}
	if seen["plan"] && seen["limits"] {
		if err := in.SetPlan(in.Plan, in.Limits); err != nil {
			return err
		}
	}
	return in.Validate()
}

// patchKey takes over what was seen in a merge patch. A plan brings its own
// limits, and those of an enterprise key stay unless others are given.
func patchKey(k, in *animalstore.Key, seen map[string]bool) error {
	if seen["name"] {
		k.Name = in.Name
	}
	if seen["permissions"] {
		k.Permissions = in.Permissions
	}
	if seen["expiresAt"] {
		k.ExpiresAt = in.ExpiresAt
	}
	if seen["plan"] || seen["limits"] {
		plan, limits := k.Plan, in.Limits
		if seen["plan"] {
			plan = in.Plan
		}
		if !seen["limits"] && plan == animalstore.PlanEnterprise && k.Plan == plan {
			limits = k.Limits
		}
		if err := k.SetPlan(plan, limits); err != nil {
			return err
		}
	}
	return k.Validate()
}

// revokeKey serves DELETE /v1/keys/{keyId}.
func (s *Server) revokeKey(w http.ResponseWriter, r *request) error {
	id, err := keyID(r)
	if err != nil {
		return err
	}
	_, err = s.changeKey(r.Context(), id, func(k *animalstore.Key) error {
		k.Revoke(animalstore.At(s.now()))
		return nil
	})
	if err != nil {
		return keyNotFound(err, id)
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// unbanKey serves POST /v1/keys/{keyId}/unban.
func (s *Server) unbanKey(w http.ResponseWriter, r *request) error {
	return s.withKey(w, r, func(id int64) (animalstore.Key, error) {
		return s.changeKey(r.Context(), id, func(k *animalstore.Key) error {
			k.UnbannedAt = animalstore.At(s.now())
			return nil
		})
	})
}

// Grace periods of a rotated secret, in seconds.
const (
	defaultGrace = 24 * 60 * 60
	maxGrace     = 90 * 24 * 60 * 60
)

// rotateKey serves POST /v1/keys/{keyId}/rotate. A body is optional.
func (s *Server) rotateKey(w http.ResponseWriter, r *request) error {
	grace := int64(defaultGrace)
	if err := decodeOptional(r, optional("graceSeconds", readInt64(&grace))); err != nil {
		return err
	}
	if grace < 0 || grace > maxGrace {
		return animalstore.Errorf(animalstore.ValidationFailed, "graceSeconds must be from 0 to %d", maxGrace)
	}
	id, err := keyID(r)
	if err != nil {
		return err
	}
	key, err := s.db.Key(r.Context(), id)
	if err != nil {
		return keyNotFound(err, id)
	}
	secret := keys.Mint(key.Environment)
	now := s.now()
	until := animalstore.At(now.Add(time.Duration(grace) * time.Second))
	if key, err = s.db.RotateKey(r.Context(), id, keys.Hash(secret), animalstore.At(now), until); err != nil {
		return keyNotFound(err, id)
	}
	return writeSecret(w, http.StatusOK, keyWithSecret{key, secret})
}

// changeKey alters a key, unless that would leave nobody to manage keys.
func (s *Server) changeKey(ctx context.Context, id int64, change func(*animalstore.Key) error) (animalstore.Key, error) {
	now := s.now()
	return s.db.UpdateKey(ctx, id, animalstore.At(now), func(k *animalstore.Key, otherAdmin bool) error {
		managed := k.Manages(now)
		if err := change(k); err != nil {
			return err
		}
		if managed && !k.Manages(now) && !otherAdmin {
			return animalstore.Errorf(animalstore.LastAdminKey, "key %d is the last that can manage keys: give another one the permission admin first", id)
		}
		return nil
	})
}

// withKey answers with the key that f returns for the id in the path.
func (s *Server) withKey(w http.ResponseWriter, r *request, f func(id int64) (animalstore.Key, error)) error {
	id, err := keyID(r)
	if err != nil {
		return err
	}
	key, err := f(id)
	if err != nil {
		return keyNotFound(err, id)
	}
	return writeResource(w, r, http.StatusOK, key)
}

func keyID(r *request) (int64, error) {
	id, ok := parseID(r.param)
	if !ok {
		return 0, animalstore.Errorf(animalstore.KeyNotFound, "there is no such key: an id is a positive integer")
	}
	return id, nil
}

func keyNotFound(err error, id int64) error {
	if errors.Is(err, db.ErrNotFound) {
		return animalstore.Errorf(animalstore.KeyNotFound, "there is no key with id %d", id)
	}
	return err
}

// writeSecret answers with a secret, which nothing on the way may keep.
func writeSecret(w http.ResponseWriter, status int, key keyWithSecret) error {
	w.Header().Set("Cache-Control", "no-store")
	return writeJSON(w, status, key)
}

func readPlan(dst *animalstore.Plan) func(jsontext.Value) error {
	return readStatus(dst, animalstore.ParsePlan, animalstore.Plans)
}

func readLimits(dst *animalstore.Limits) func(jsontext.Value) error {
	return readObject(
		required("perMinute", readPositive(&dst.PerMinute)),
		required("perDay", readPositive(&dst.PerDay)))
}

func readPermissions(dst *animalstore.Permissions) func(jsontext.Value) error {
	return func(v jsontext.Value) error {
		names, err := stringsOf(v)
		if err != nil {
			return errors.New("must be an array of read, write and admin")
		}
		*dst = 0
		for _, name := range names {
			p, ok := animalstore.ParsePermission(name)
			if !ok {
				return errors.New("must be an array of read, write and admin")
			}
			*dst |= p
		}
		return nil
	}
}

// readFuture reads a time that is yet to come, or null for never.
func (s *Server) readFuture(dst *animalstore.Time) func(jsontext.Value) error {
	return func(v jsontext.Value) error {
		if v.Kind() == 'n' {
			*dst = animalstore.Time{}
			return nil
		}
		var text string
		if err := readString(&text)(v); err != nil {
			return errors.New("must be a time such as 2027-01-31T12:00:00Z, or null for never")
		}
		t, err := time.Parse(time.RFC3339, text)
		if err != nil || t.UTC().Year() > 9999 {
			return errors.New("must be a time such as 2027-01-31T12:00:00Z, or null for never")
		}
		if !t.After(s.now()) {
			return errors.New("must be in the future")
		}
		*dst = animalstore.At(t)
		return nil
	}
}
