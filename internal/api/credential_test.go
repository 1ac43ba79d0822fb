package api_test

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"animalstore"
	"animalstore/internal/keys"
)

const (
	challenge        = `Bearer realm="animalstore"`
	challengeInvalid = `Bearer realm="animalstore", error="invalid_token"`
)

// TestCredential is every way to send a key, right or wrong. The states of keys are in
// keyStates, and what a key looks like is tested in package keys.
func TestCredential(t *testing.T) {
	s := start(t)
	good := s.owner
	const missing, invalid = animalstore.MissingAPIKey, animalstore.InvalidAPIKey
	tests := []struct {
		name   string
		header []string
		code   animalstore.Code // "": let in
	}{
		{"good", []string{"Bearer " + good}, ""},
		{"scheme in lower case", []string{"bearer " + good}, ""},
		{"several spaces between", []string{"Bearer    " + good}, ""},
		{"spaces around", []string{"  Bearer " + good + "  "}, ""},

		{"no header", nil, missing},
		{"the scheme alone", []string{"Bearer"}, missing},
		{"the key without a scheme", []string{good}, missing},
		{"Basic", []string{"Basic " + good}, missing},
		{"a tab between", []string{"Bearer\t" + good}, missing},

		{"cut off", []string{"Bearer " + good[:len(good)-1]}, invalid},
		{"a second word", []string{"Bearer " + good + " x"}, invalid},
		{"twice in one header", []string{"Bearer " + good + ", Bearer " + good}, invalid},
		{"two headers", []string{"Bearer " + good, "Bearer " + good}, invalid},
		{"not UTF-8", []string{"Bearer " + strings.Repeat("\xff", 30)}, invalid},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got := s.do(t, call{path: "/v1/pets", key: noKey, header: http.Header{"Authorization": test.header}})
			if test.code == "" {
				got.want(t, http.StatusOK, "")
				return
			}
			got.want(t, http.StatusUnauthorized, test.code)
			want := challenge
			if test.code == invalid {
				want = challengeInvalid
			}
			if got := got.header.Get("WWW-Authenticate"); got != want {
				t.Errorf("WWW-Authenticate: got %s, want %s", got, want)
			}
			for _, secret := range test.header {
				if len(secret) > 20 && len(s.log.lines(strings.Fields(secret)[len(strings.Fields(secret))-1])) > 0 {
					t.Errorf("the log has the token in it")
				}
			}
		})
	}
}

// TestRefusalsReadTheSame: someone who found a key can't tell whether it ever worked,
// neither from the response nor from the work that it takes.
func TestRefusalsReadTheSame(t *testing.T) {
	t.Parallel()
	s := start(t).inProcess()
	refused := map[string]string{"broken": "ast_live_x", "of the other deployment": keys.Mint(animalstore.Staging), "short": "x"}
	for _, state := range keyStates {
		if state.code == animalstore.InvalidAPIKey {
			refused[state.name] = state.make(t, s, everything)
		}
	}
	asks := []string{"unknown", "suspended and revoked", "expired", "rotated away, after its grace period", "rotated away without grace"}
	for _, path := range []string{"/v1/pets", "/v1/keys", "/v1/nothing"} {
		var want response
		for i, name := range append([]string{"unknown"}, slices.Sorted(maps.Keys(refused))...) {
			for try := range 2 {
				s.db.called()
				got := s.do(t, call{path: path, key: refused[name], from: fmt.Sprintf("192.0.2.%d:1", i+1), header: http.Header{"X-Request-Id": {"same"}}})
				calls := s.db.called()
				wantCalls := map[string]int{"KeyByHash": 1}
				if !slices.Contains(asks, name) {
					wantCalls = nil // its form shows that it isn't one of ours
				}
				if !maps.Equal(calls, wantCalls) {
					t.Errorf("%s, try %d: got %v asked of the database, want %v", name, try+1, calls, wantCalls)
				}
				got.header.Del("X-RateLimit-Remaining")
				if i == 0 && try == 0 {
					want = got
				}
				if got.status != want.status || string(got.body) != string(want.body) || !maps.EqualFunc(got.header, want.header, slices.Equal) {
					t.Errorf("%s: got %v %v\nwant what an unknown key gets, %v %v", name, got, got.header, want, want.header)
				}
			}
		}
	}
}

// TestKeyElsewhere: a key counts in the Authorization header and nowhere else.
func TestKeyElsewhere(t *testing.T) {
	s := start(t)
	for name, c := range map[string]call{
		"access_token in the query": {path: "/v1/pets?access_token=" + s.owner},
		"X-API-Key":                 {path: "/v1/pets", header: http.Header{"X-Api-Key": {s.owner}}},
		"a cookie":                  {path: "/v1/pets", header: http.Header{"Cookie": {"api_key=" + s.owner}}},
		"the proxy's header":        {path: "/v1/pets", header: http.Header{"Proxy-Authorization": {"Bearer " + s.owner}}},
	} {
		c.key = noKey
		if got := s.do(t, c); got.code() != animalstore.MissingAPIKey {
			t.Errorf("%s: got %v, want %s", name, got, animalstore.MissingAPIKey)
		}
	}
}

// TestStaging: the deployment decides which keys are its own.
func TestStaging(t *testing.T) {
	s := start(t, func(with *setup) { with.env = animalstore.Staging })
	if !strings.HasPrefix(s.owner, "ast_test_") {
		t.Fatalf("got key %.9s…, want ast_test_", s.owner)
	}
	s.do(t, call{path: "/v1/pets"}).want(t, http.StatusOK, "")
	live, _ := s.makeKey(t, keys.Mint(animalstore.Production), func(k *animalstore.NewKey) { k.Environment = animalstore.Production })
	s.do(t, call{path: "/v1/pets", key: live}).want(t, http.StatusUnauthorized, animalstore.InvalidAPIKey)
}
