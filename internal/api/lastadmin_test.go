package api_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/keys"
)

// adminKey makes one more key that manages keys.
func (s *service) adminKey(t testing.TB, change ...func(*animalstore.NewKey)) (secret string, id int64) {
	t.Helper()
	return s.makeKey(t, keys.Mint(s.env), append([]func(*animalstore.NewKey){func(k *animalstore.NewKey) { k.Permissions = everything }}, change...)...)
}

const adminID = 2 // of the key that start makes

// TestLastAdmin: no request may leave a deployment without a key that can
// manage keys, whatever other keys there are that could not.
func TestLastAdmin(t *testing.T) {
	t.Parallel()
	others := map[string]func(t *testing.T, s *service){
		"no other": func(*testing.T, *service) {},
		"another that is expired": func(t *testing.T, s *service) {
			s.adminKey(t, func(k *animalstore.NewKey) { k.ExpiresAt = animalstore.At(s.clock.Now()) })
		},
		"another that is revoked": func(t *testing.T, s *service) {
			_, id := s.adminKey(t)
			if _, err := s.revoke(t, id); err != nil {
				t.Fatal(err)
			}
		},
		"another of the other deployment": func(t *testing.T, s *service) {
			s.makeKey(t, keys.Mint(animalstore.Staging), func(k *animalstore.NewKey) { k.Permissions, k.Environment = everything, animalstore.Staging })
		},
	}
	ways := map[string]struct{ method, body string }{
		"revoked":             {"DELETE", ""},
		"demoted":             {"PATCH", `{"permissions":["read","write"]}`},
		"demoted and renamed": {"PATCH", `{"name":"x","permissions":["read"],"plan":"free"}`},
	}
	for other, make := range others {
		for way, c := range ways {
			t.Run(way+" with "+other, func(t *testing.T) {
				s := start(t)
				make(t, s)
				before := s.asAdmin(t, "GET", keyPath(adminID), "")
				got := s.asAdmin(t, c.method, keyPath(adminID), c.body)
				got.want(t, http.StatusConflict, animalstore.LastAdminKey)
				got.wantMessage(t, "last", "admin")
				if after := s.asAdmin(t, "GET", keyPath(adminID), ""); string(after.body) != string(before.body) {
					t.Errorf("got %s, want it as it was, %s", after.body, before.body)
				}
				s.adminKey(t)
				if got := s.asAdmin(t, c.method, keyPath(adminID), c.body); got.status >= 300 {
					t.Errorf("with one that can: got %v, want it done", got)
				}
			})
		}
	}
	t.Run("what leaves it an admin is allowed", func(t *testing.T) {
		s := start(t)
		for _, body := range []string{`{"name":"x"}`, `{"plan":"free"}`, `{"permissions":["admin"]}`, `{"expiresAt":"2027-01-01T00:00:00Z"}`} {
			s.asAdmin(t, "PATCH", keyPath(adminID), body).want(t, http.StatusOK, "")
		}
		s.asAdmin(t, "POST", keyPath(adminID, "/rotate"), "").want(t, http.StatusOK, "")
		s.asAdmin(t, "DELETE", keyPath(1), "").want(t, http.StatusNoContent, "") // no admin
	})
}

// TestLastAdminsAtOnce: of the last two that revoke or demote each other at the
// same time, one does. Of more, one remains.
func TestLastAdminsAtOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	last := s.admin
	lastID := int64(adminID)
	for round := range 40 {
		type admin struct {
			secret string
			id     int64
		}
		admins := []admin{{last, lastID}}
		for range 1 + round%4 {
			secret, id := s.adminKey(t)
			admins = append(admins, admin{secret, id})
		}
		for _, a := range admins {
			s.do(t, call{path: "/v1/keys", key: a.secret}).want(t, http.StatusOK, "")
		}
		responses := make([]response, len(admins))
		var group sync.WaitGroup
		begin := make(chan struct{})
		for i, a := range admins {
			victim := admins[(i+1)%len(admins)]
			c := call{method: "DELETE", path: keyPath(victim.id), key: a.secret}
			if (round+i)%3 == 0 {
				c.method, c.body = "PATCH", `{"permissions":["read"]}`
			}
			group.Go(func() {
				<-begin
				var err error
				if responses[i], err = s.send(context.Background(), c); err != nil {
					t.Error(err)
				}
			})
		}
		close(begin)
		group.Wait()
		refused := 0
		for i, got := range responses {
			if got.status >= 300 {
				refused++
				got.want(t, http.StatusConflict, animalstore.LastAdminKey)
				last, lastID = admins[(i+1)%len(admins)].secret, admins[(i+1)%len(admins)].id
			}
		}
		if refused != 1 {
			t.Fatalf("round %d: got %v, want one of %d refused", round, responses, len(admins))
		}
		s.clock.advance(time.Second)
		s.do(t, call{path: fmt.Sprint("/v1/keys/", lastID), key: last}).want(t, http.StatusOK, "")
		for _, a := range admins {
			if a.id == lastID {
				continue
			}
			if got := s.do(t, call{path: "/v1/keys", key: a.secret}); got.status != 401 && got.status != 403 {
				t.Errorf("round %d: key %d: got %v, want it to manage no longer", round, a.id, got)
			}
		}
	}
}
