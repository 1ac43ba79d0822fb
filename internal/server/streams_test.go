package server

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"animalstore"
	"animalstore/internal/db"
	"animalstore/internal/keys"
)

// slowKeys is a database that takes a tenth of a second to read keys.
type slowKeys struct{ db.DB }

func (s slowKeys) KeyByHash(ctx context.Context, hash db.KeyHash) (animalstore.Key, bool, error) {
	time.Sleep(100 * time.Millisecond)
	return s.DB.KeyByHash(ctx, hash)
}

func (s slowKeys) KeysByHash(ctx context.Context, hashes []db.KeyHash) (map[db.KeyHash]animalstore.Key, error) {
	time.Sleep(100 * time.Millisecond)
	return s.DB.KeysByHash(ctx, hashes)
}

func (s slowKeys) KeysVersion(ctx context.Context) (string, error) {
	time.Sleep(100 * time.Millisecond)
	return s.DB.KeysVersion(ctx)
}

// TestManyEndedStreams: however many keys have a stream and however slow the database is, a
// stream ends within a second of the revocation of its key.
func TestManyEndedStreams(t *testing.T) {
	const groups, size = 2, 50 // reading the keys separately would take 10 s
	synctest.Test(t, func(t *testing.T) {
		s, network := runInBubble(t, func(c *Config) {
			c.Hooks.WrapDB = func(store db.DB) db.DB { return slowKeys{store} }
		})
		transport := &http.Transport{DialContext: network.Dial}
		defer transport.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute) // of the bubble's clock
		defer cancel()
		open := func(secret string) io.ReadCloser {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://store.test/v1/events", nil)
			if err != nil {
				t.Fatal(err)
			}
			req.Header = http.Header{"Accept": {"text/event-stream"}, "Authorization": {"Bearer " + secret}}
			res, err := transport.RoundTrip(req)
			if err != nil || res.StatusCode != http.StatusOK {
				t.Fatalf("got %v, %v, want a stream", res, err)
			}
			return res.Body
		}
		now := animalstore.At(time.Now())
		key := animalstore.NewKey{Plan: animalstore.PlanEnterprise, Limits: animalstore.Limits{PerMinute: 10, PerDay: 10}, Permissions: animalstore.Read, Environment: animalstore.Production}
		ended := make([]time.Time, groups)
		var followers sync.WaitGroup
		for i := range groups * size {
			secret := keys.Mint(key.Environment)
			key.Name = fmt.Sprint("follower ", i)
			if _, err := s.DB().CreateKey(t.Context(), key, keys.Hash(secret), now); err != nil {
				t.Fatal(err)
			}
			stream := open(secret)
			followers.Go(func() {
				defer stream.Close()
				if _, err := io.Copy(io.Discard, stream); err != nil {
					t.Errorf("stream %d was cut off: %v", i, err)
				}
				if took := time.Since(ended[i%groups]); ended[i%groups].IsZero() || took > time.Second {
					t.Errorf("stream %d ended %v after its key was changed, want within a second", i, took)
				}
			})
		}
		for group := range groups { // not all at the same time since the last check
			time.Sleep(437 * time.Millisecond)
			now := time.Now()
			ended[group] = now
			for id := group + 1; id <= groups*size; id += groups {
				_, err := s.DB().UpdateKey(t.Context(), int64(id), animalstore.At(now), func(k *animalstore.Key, _ bool) error {
					k.Revoke(animalstore.At(now))
					return nil
				})
				if err != nil {
					t.Fatal(err)
				}
			}
		}
		followers.Wait()
	})
}
