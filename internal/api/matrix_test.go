package api_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/keys"
)

// keyState is a state that a key can be in, and the response to every request with it.
type keyState struct {
	name   string
	status int // 0: the request goes on to its permission
	code   animalstore.Code
	make   func(t *testing.T, s *service, p animalstore.Permissions) string
}

// with creates a key with these permissions, after change has modified it.
func (s *service) with(t *testing.T, p animalstore.Permissions, change func(*animalstore.NewKey)) (string, int64) {
	t.Helper()
	return s.makeKey(t, keys.Mint(s.env), func(k *animalstore.NewKey) {
		k.Permissions = p
		if change != nil {
			change(k)
		}
	})
}

// limited creates a key with a stored limit state.
func limited(state func(now int64) db.LimitState) func(*testing.T, *service, animalstore.Permissions) string {
	return func(t *testing.T, s *service, p animalstore.Permissions) string {
		secret, id := s.with(t, p, func(k *animalstore.NewKey) { k.Limits = animalstore.Limits{PerMinute: 5, PerDay: 10} })
		s.remember(t, id, state(s.clock.Now().UnixMilli()))
		return secret
	}
}

// remember stores the limit state of a key, as if it had been used before.
func (s *service) remember(t testing.TB, keyID int64, state db.LimitState) {
	t.Helper()
	if err := s.db.SaveLimitStates(t.Context(), []db.KeyLimitState{{KeyID: keyID, LimitState: state}}); err != nil {
		t.Fatal(err)
	}
}

// rotated creates a key that was rotated a second ago and returns its old secret if
// before is set, and otherwise the new one.
func rotated(before bool, grace time.Duration) func(*testing.T, *service, animalstore.Permissions) string {
	return func(t *testing.T, s *service, p animalstore.Permissions) string {
		secret, id := s.with(t, p, nil)
		fresh, now := keys.Mint(s.env), s.clock.Now().Add(-time.Second)
		if _, err := s.db.RotateKey(t.Context(), id, db.KeyRotation{Hash: keys.Hash(fresh), At: animalstore.At(now), OldUntil: animalstore.At(now.Add(grace))}, nil); err != nil {
			t.Fatal(err)
		}
		if before {
			return secret
		}
		return fresh
	}
}

// inNetworks creates a key that works in these networks.
func inNetworks(networks ...string) func(*testing.T, *service, animalstore.Permissions) string {
	return func(t *testing.T, s *service, p animalstore.Permissions) string {
		secret, _ := s.with(t, p, func(k *animalstore.NewKey) { k.Networks = animalstore.Networks(strings.Join(networks, ",")) })
		return secret
	}
}

// suspend suspends or resumes a key.
func (s *service) suspend(t testing.TB, id int64, suspended bool) {
	t.Helper()
	now := s.clock.Now()
	_, err := s.db.UpdateKey(t.Context(), id, animalstore.At(now), func(k *animalstore.Key, _ bool) error {
		return animalstore.KeyPatch{Suspended: &suspended}.Apply(k, now)
	})
	if err != nil {
		t.Fatal(err)
	}
}

var keyStates = []keyState{
	{"live", 0, "", func(t *testing.T, s *service, p animalstore.Permissions) string { return s.key(t, p) }},
	{"rotated", 0, "", rotated(false, time.Hour)},
	{"rotated away, in its grace period", 0, "", rotated(true, 1001*time.Millisecond)},
	{"rotated away, after its grace period", 401, "invalid_api_key", rotated(true, time.Second)},
	{"rotated away without grace", 401, "invalid_api_key", rotated(true, 0)},
	{"none", 401, "missing_api_key", func(*testing.T, *service, animalstore.Permissions) string { return noKey }},
	{"unknown", 401, "invalid_api_key", func(_ *testing.T, s *service, _ animalstore.Permissions) string { return keys.Mint(s.env) }},
	{"mistyped", 401, "invalid_api_key", func(t *testing.T, s *service, p animalstore.Permissions) string {
		return strings.ToLower(s.key(t, p))
	}},
	{"expired", 401, "invalid_api_key", func(t *testing.T, s *service, p animalstore.Permissions) string {
		secret, _ := s.with(t, p, func(k *animalstore.NewKey) { k.ExpiresAt = animalstore.At(s.clock.Now()) })
		return secret
	}},
	{"suspended and revoked", 401, "invalid_api_key", func(t *testing.T, s *service, p animalstore.Permissions) string {
		secret, id := s.with(t, p, nil)
		s.suspend(t, id, true)
		if _, err := s.revoke(t, id); err != nil {
			t.Fatal(err)
		}
		return secret
	}},
	{"of the other deployment", 401, "invalid_api_key", func(t *testing.T, s *service, p animalstore.Permissions) string {
		secret, _ := s.makeKey(t, keys.Mint(animalstore.Staging), func(k *animalstore.NewKey) { k.Permissions, k.Environment = p, animalstore.Staging })
		return secret
	}},
	{"suspended", 403, "key_suspended", func(t *testing.T, s *service, p animalstore.Permissions) string {
		secret, id := s.with(t, p, nil)
		s.suspend(t, id, true)
		return secret
	}},
	{"suspended and used outside its networks", 403, "key_suspended", func(t *testing.T, s *service, p animalstore.Permissions) string {
		secret, id := s.with(t, p, func(k *animalstore.NewKey) { k.Networks = "203.0.113.0/24" })
		s.suspend(t, id, true)
		return secret
	}},
	{"resumed", 0, "", func(t *testing.T, s *service, p animalstore.Permissions) string {
		secret, id := s.with(t, p, nil)
		s.suspend(t, id, true)
		s.suspend(t, id, false)
		return secret
	}},
	{"used outside its networks", 403, "address_not_allowed", inNetworks("203.0.113.0/24", "192.0.3.0/24", "2001:db8::/32")},
	{"used in its networks", 0, "", inNetworks("203.0.113.0/24", "192.0.2.0/24")},
	{"with its minute used up", 429, "rate_limit_exceeded", limited(func(now int64) db.LimitState {
		return db.LimitState{Minute: db.Window{Used: 5, End: now + 30_000}}
	})},
	{"with its day used up", 429, "daily_quota_exceeded", limited(func(now int64) db.LimitState {
		return db.LimitState{Day: db.Window{Used: 10, End: now + 3_600_000}}
	})},
	{"banned", 429, "key_banned", limited(func(now int64) db.LimitState {
		return db.LimitState{BannedAt: now - 1, BannedUntil: now + 300_000, BanLevel: 1}
	})},
}

// TestRoutesByPermissionsAndKeys is every operation in every state of a key and, with a live
// one, with each permission. What sets of them allow is tested with the type. A request that
// is refused never reaches the operation.
func TestRoutesByPermissionsAndKeys(t *testing.T) {
	t.Parallel()
	s := start(t).inProcess()
	prepared := map[string]call{}
	for _, op := range operations {
		prepared[op.id] = op.call(t, s)
	}
	for i, state := range keyStates {
		sets := []animalstore.Permissions{everything}
		if state.name == "live" {
			for p := animalstore.Permissions(1); p <= animalstore.AllPermissions; p <<= 1 {
				sets = append(sets, p)
			}
		}
		for _, p := range sets {
			t.Run(state.name+" with "+p.String(), func(t *testing.T) {
				key := state.make(t, s, p)
				from := fmt.Sprintf("192.0.2.%d:4711", i)
				for _, op := range operations {
					c := prepared[op.id]
					want, code := state.status, state.code
					switch {
					case want == 0 && !op.allowed(p):
						want, code = 403, animalstore.InsufficientPermission
					case want == 0:
						want, c = op.ok, op.call(t, s)
					}
					c.key, c.from = key, from
					s.db.called()
					got := s.do(t, c)
					reached := s.db.called()[op.method] > 0
					if got.status != want || got.code() != code {
						t.Errorf("%s: got %v, want %d %s", op.id, got, want, code)
					}
					if want >= 400 && reached && op.id != "getLimits" {
						t.Errorf("%s: got as far as %s, want it refused before", op.id, op.method)
					}
					if c.reads() {
						c.method = "HEAD"
						if head := s.do(t, c); head.status != want {
							t.Errorf("HEAD of %s: got %v, want %d", op.id, head, want)
						}
					}
					c.method, c.body = "OPTIONS", ""
					if want = state.status; want == 0 {
						want = http.StatusNoContent
					}
					if options := s.do(t, c); options.status != want {
						t.Errorf("OPTIONS of %s: got %v, want %d", op.id, options, want)
					}
				}
			})
		}
	}
}
