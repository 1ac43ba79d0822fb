package dbtest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

func adminKey(t *testing.T, d db.DB, name string, change ...func(*animalstore.NewKey)) animalstore.Key {
	t.Helper()
	k := plainKey(t, name)
	k.Permissions = animalstore.Admin | animalstore.Read
	for _, f := range change {
		f(&k)
	}
	return mustCreateKey(t, d, k, name)
}

func keyChangesReadBack(t *testing.T, d db.DB) {
	key, other := mustCreateKey(t, d, plainKey(t, "one"), "one"), mustCreateKey(t, d, plainKey(t, "other"), "other")
	for _, change := range []func(*animalstore.Key){
		func(k *animalstore.Key) { k.Name = "Büro 🦊" },
		func(k *animalstore.Key) {
			k.Plan, k.Limits = animalstore.PlanEnterprise, animalstore.Limits{PerMinute: 7, PerDay: 1 << 62}
		},
		func(k *animalstore.Key) { k.Permissions = animalstore.Write | animalstore.Admin },
		func(k *animalstore.Key) { k.ExpiresAt = later },
		func(k *animalstore.Key) { k.ExpiresAt = animalstore.Time{} },
		func(k *animalstore.Key) { k.Permissions, k.Networks = animalstore.PetsWrite, "203.0.113.7/32,::/0" },
		func(k *animalstore.Key) { k.Networks = "" },
		func(k *animalstore.Key) { k.Suspend(later) },
		func(k *animalstore.Key) { k.Resume() },
		func(k *animalstore.Key) { k.UnbannedAt = later },
		func(k *animalstore.Key) { k.Revoke(later) },
	} {
		change(&key)
		if got := mustUpdateKey(t, d, key.ID, change); !reflect.DeepEqual(got, key) {
			t.Errorf("UpdateKey = %+v, want %+v", got, key)
		}
		if got, err := d.Key(t.Context(), key.ID); err != nil || !reflect.DeepEqual(got, key) {
			t.Errorf("Key = %+v, %v, want %+v", got, err, key)
		}
		wantFound(t, d, "one", key)
	}
	_, err := d.UpdateKey(t.Context(), key.ID, noon, func(k *animalstore.Key, _ bool) error { k.Name = "never"; return errNotNow })
	if !errors.Is(err, errNotNow) {
		t.Errorf("UpdateKey: %v, want change's error", err)
	}
	wantFound(t, d, "one", key)
	wantFound(t, d, "other", other)
}

// otherAdmins: a change of a key sees whether another key of the same environment can
// manage keys at that time.
func otherAdmins(t *testing.T, d db.DB) {
	key := adminKey(t, d, "the one")
	otherAdminAt := func(at animalstore.Time) (seen bool) {
		t.Helper()
		_, err := d.UpdateKey(t.Context(), key.ID, at, func(_ *animalstore.Key, otherAdmin bool) error { seen = otherAdmin; return nil })
		if err != nil {
			t.Fatal(err)
		}
		return seen
	}
	mustCreateKey(t, d, plainKey(t, "reads only"), "reads only")
	adminKey(t, d, "elsewhere", func(k *animalstore.NewKey) { k.Environment = animalstore.Staging })
	adminKey(t, d, "for a while", func(k *animalstore.NewKey) { k.ExpiresAt = later })
	suspended := adminKey(t, d, "suspended")
	mustSuspend(t, d, suspended.ID, true)
	revoked := adminKey(t, d, "revoked")
	mustRevoke(t, d, revoked.ID)
	for at, want := range map[animalstore.Time]bool{
		animalstore.At(later.Add(-time.Millisecond)): true, later: false, animalstore.At(later.Add(time.Hour)): false,
	} {
		if got := otherAdminAt(at); got != want {
			t.Errorf("with a key that expires at %v, otherAdmin is %t at %v, want %t", later, got, at, want)
		}
	}
	mustSuspend(t, d, suspended.ID, false)
	if !otherAdminAt(later) {
		t.Error("with an admin key that was resumed, otherAdmin is false")
	}
}

// mustSuspend suspends or resumes a key.
func mustSuspend(t *testing.T, d db.DB, id int64, suspended bool) {
	t.Helper()
	mustUpdateKey(t, d, id, func(k *animalstore.Key) {
		if err := (animalstore.KeyPatch{Suspended: &suspended}).Apply(k, noon.Time); err != nil {
			t.Fatal(err)
		}
	})
}

// suspensionEndsSessions: suspending a key deletes the sessions of all its secrets, and no
// others.
func suspensionEndsSessions(t *testing.T, d db.DB) {
	key := mustCreateKey(t, d, plainKey(t, "one"), "old")
	mustCreateKey(t, d, plainKey(t, "other"), "other")
	if _, err := d.RotateKey(t.Context(), key.ID, db.KeyRotation{Hash: hashOf("new"), At: noon, OldUntil: later}, nil); err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"old", "new", "other"} {
		if err := d.CreateSession(t.Context(), db.Session{Hash: hashOf("session of " + secret), Secret: hashOf(secret), ExpiresAt: later}); err != nil {
			t.Fatal(err)
		}
	}
	mustUpdateKey(t, d, key.ID, func(k *animalstore.Key) { k.Networks = "::/0" })
	for _, want := range []struct {
		suspended bool
		left      int
	}{{false, 3}, {true, 1}, {true, 1}, {false, 1}} {
		mustSuspend(t, d, key.ID, want.suspended)
		left := 0
		for _, secret := range []string{"old", "new", "other"} {
			if _, err := d.Session(t.Context(), hashOf("session of "+secret)); err == nil {
				left++
			}
		}
		if left != want.left {
			t.Errorf("suspended %t: got %d sessions, want %d", want.suspended, left, want.left)
		}
	}
}

// lastAdminRace: if all admin keys are revoked at once, each unless it is the last, one
// is left.
func lastAdminRace(t *testing.T, d db.DB) {
	const n = 10
	var keys []animalstore.Key
	for i := range n {
		keys = append(keys, adminKey(t, d, fmt.Sprint("admin ", i)))
	}
	var refused atomic.Int64
	together(t, n, func(i int) error {
		_, err := d.UpdateKey(t.Context(), keys[i].ID, noon, func(k *animalstore.Key, otherAdmin bool) error {
			if !otherAdmin {
				return errNotNow
			}
			k.Revoke(noon)
			return nil
		})
		if errors.Is(err, errNotNow) {
			refused.Add(1)
			return nil
		}
		return err
	})
	left := slices.DeleteFunc(mustKeys(t, d), func(k animalstore.Key) bool { return !k.Manages(noon.Time) })
	if len(left) != 1 || refused.Load() != 1 {
		t.Errorf("%d were refused and %+v manage keys, want one and one", refused.Load(), left)
	}
}

func rotation(t *testing.T, d db.DB) {
	key := mustCreateKey(t, d, plainKey(t, "one"), "first")
	other := mustCreateKey(t, d, plainKey(t, "other"), "other")
	at := func(d time.Duration) animalstore.Time { return animalstore.At(noon.Add(d)) }
	ends := func(secret string, end animalstore.Time) {
		t.Helper()
		want := key
		want.SecretExpiresAt = end
		wantFound(t, d, secret, want)
	}
	rotate := func(secret string, now, until animalstore.Time) {
		t.Helper()
		if got, err := d.RotateKey(t.Context(), key.ID, db.KeyRotation{Hash: hashOf(secret), At: now, OldUntil: until}, nil); err != nil || !reflect.DeepEqual(got, key) {
			t.Errorf("RotateKey to %s = %+v, %v, want %+v", secret, got, err, key)
		}
	}
	rotate("second", noon, at(time.Hour))
	ends("first", at(time.Hour))
	ends("second", animalstore.Time{})
	rotate("third", at(time.Minute), at(3*time.Hour)) // doesn't extend the first secret
	ends("first", at(time.Hour))
	ends("second", at(3*time.Hour))
	rotate("fourth", at(2*time.Minute), at(2*time.Minute)) // at once
	for _, secret := range []string{"first", "second", "third"} {
		if got, found, err := d.KeyByHash(t.Context(), hashOf(secret)); err != nil || found && got.Live(at(2*time.Minute).Time) {
			t.Errorf("%s still opens %+v (%v)", secret, got, err)
		}
	}
	ends("fourth", animalstore.Time{})
	wantFound(t, d, "other", other)

	if _, err := d.RotateKey(t.Context(), key.ID, db.KeyRotation{Hash: hashOf("other"), At: noon, OldUntil: later}, nil); !errors.Is(err, db.ErrExists) {
		t.Errorf("RotateKey to a secret in use: %v, want ErrExists", err)
	}
	ends("fourth", animalstore.Time{})
	if _, err := d.RotateKey(t.Context(), other.ID+1, db.KeyRotation{Hash: hashOf("new"), At: noon, OldUntil: later}, nil); !errors.Is(err, db.ErrNotFound) {
		t.Errorf("RotateKey of an absent key: %v, want ErrNotFound", err)
	}
	_, err := d.RotateKey(t.Context(), key.ID, db.KeyRotation{Hash: hashOf("new"), At: noon, OldUntil: later}, func(k *animalstore.Key) error {
		if !reflect.DeepEqual(*k, key) {
			t.Errorf("check got %+v, want %+v", *k, key)
		}
		return errNotNow
	})
	if !errors.Is(err, errNotNow) {
		t.Errorf("RotateKey: %v, want check's error", err)
	}
	ends("fourth", animalstore.Time{})
	mustRevoke(t, d, key.ID)
	_, err = d.RotateKey(t.Context(), key.ID, db.KeyRotation{Hash: hashOf("new"), At: noon, OldUntil: later}, nil)
	wantCode(t, err, animalstore.InvalidTransition)
	if _, found, _ := d.KeyByHash(t.Context(), hashOf("new")); found {
		t.Error("a refused rotation left its secret")
	}
}

func usageAdds(t *testing.T, d db.DB) {
	one, two := mustCreateKey(t, d, plainKey(t, "one"), "one"), mustCreateKey(t, d, plainKey(t, "two"), "two")
	hour := func(n int) animalstore.Time {
		return animalstore.At(noon.Truncate(time.Hour).Add(time.Duration(n) * time.Hour))
	}
	save := func(usage ...db.KeyUsage) error { return d.SaveUsage(t.Context(), usage) }
	err := errors.Join(
		save(db.KeyUsage{KeyID: one.ID, Hour: hour(0), Admitted: 3, Refused: 1, LastUsed: later}, db.KeyUsage{KeyID: two.ID, Hour: hour(0), Admitted: 7, LastUsed: noon}),
		save(db.KeyUsage{KeyID: one.ID, Hour: hour(0), Admitted: 4, LastUsed: noon}, db.KeyUsage{KeyID: one.ID, Hour: hour(2), Refused: 5, LastUsed: noon},
			db.KeyUsage{KeyID: one.ID, Hour: hour(0), Admitted: 6, LastUsed: noon}),
		save())
	if err != nil {
		t.Fatal(err)
	}
	want := []animalstore.Usage{{Hour: hour(2), Refused: 5}, {Hour: hour(0), Admitted: 13, Refused: 1}}
	for since, want := range map[animalstore.Time][]animalstore.Usage{hour(-5): want, hour(0): want, hour(1): want[:1], hour(3): {}} {
		if got, err := d.Usage(t.Context(), one.ID, since); err != nil || got == nil || !slices.Equal(got, want) {
			t.Errorf("Usage since %v = %+v, %v, want %+v", since, got, err, want)
		}
	}
	one.LastUsedAt, two.LastUsedAt = later, noon // the latest one saved
	wantFound(t, d, "one", one)
	wantFound(t, d, "two", two)
	// It saves all of it or nothing.
	if err := save(db.KeyUsage{KeyID: one.ID, Hour: hour(2), Admitted: 1, LastUsed: later}, db.KeyUsage{KeyID: 999, Hour: hour(2), Admitted: 1}); err == nil {
		t.Error("SaveUsage of a key that does not exist returned nil")
	}
	if got, err := d.Usage(t.Context(), one.ID, hour(0)); err != nil || !slices.Equal(got, want) {
		t.Errorf("after a failure: got %+v, %v, want %+v", got, err, want)
	}
}

func dropsUsage(t *testing.T, d db.DB) {
	key := mustCreateKey(t, d, plainKey(t, "one"), "one")
	hour := func(n int) animalstore.Time {
		return animalstore.At(noon.Truncate(time.Hour).Add(time.Duration(n) * time.Hour))
	}
	for i := range 10 {
		if err := d.SaveUsage(t.Context(), []db.KeyUsage{{KeyID: key.ID, Hour: hour(i), Admitted: 1}}); err != nil {
			t.Fatal(err)
		}
	}
	for step, want := range []int{3, 3, 1, 0} { // seven lie before hour 7
		if dropped, err := d.DropUsage(t.Context(), hour(7), 3); err != nil || dropped != want {
			t.Errorf("step %d: dropped %d, %v, want %d", step, dropped, err, want)
		}
	}
	if got, err := d.Usage(t.Context(), key.ID, hour(0)); err != nil || len(got) != 3 || got[2].Hour != hour(7) {
		t.Errorf("got %+v left, %v, want hours 7 to 9", got, err)
	}
}

func limitsReadBack(t *testing.T, d db.DB) {
	one, two := mustCreateKey(t, d, plainKey(t, "one"), "one"), mustCreateKey(t, d, plainKey(t, "two"), "two")
	want := func(id int64, want db.LimitState) {
		t.Helper()
		if got, err := d.LimitState(t.Context(), id); err != nil || got != want {
			t.Errorf("LimitState(%d) = %+v, %v, want %+v", id, got, err, want)
		}
	}
	want(one.ID, db.LimitState{})
	want(999, db.LimitState{})
	full := db.LimitState{
		Minute: db.Window{Used: 1, End: 2, Refused: 3}, Day: db.Window{Used: 4, End: 5, Refused: 6},
		Strikes: 7, StrikesSince: 8, BannedAt: 9, BannedUntil: 10, BanLevel: 1 << 62,
	}
	save := func(states ...db.KeyLimitState) error { return d.SaveLimitStates(t.Context(), states) }
	if err := save(db.KeyLimitState{KeyID: one.ID, LimitState: full}, db.KeyLimitState{KeyID: two.ID, LimitState: db.LimitState{Strikes: 1}}); err != nil {
		t.Fatal(err)
	}
	want(one.ID, full)
	want(two.ID, db.LimitState{Strikes: 1})
	if err := save(db.KeyLimitState{KeyID: two.ID, LimitState: db.LimitState{BanLevel: 2}}); err != nil {
		t.Fatal(err)
	}
	want(one.ID, full)
	want(two.ID, db.LimitState{BanLevel: 2})
	if err := save(db.KeyLimitState{KeyID: one.ID}, db.KeyLimitState{KeyID: 999}); err == nil {
		t.Error("SaveLimitStates of a key that does not exist returned nil")
	}
	want(one.ID, full)
}

// olderLimits: several servers save their state of a key, and the last to save may know
// the least.
func olderLimits(t *testing.T, d db.DB) {
	const day = 24 * 60 * 60 * 1000
	const midnight = 20_000 * day
	state := func(bannedAt, dayEnd, dayUsed, strikes int64) db.LimitState {
		return db.LimitState{BannedAt: bannedAt, Day: db.Window{End: dayEnd, Used: dayUsed}, Strikes: strikes}
	}
	type test struct {
		name          string
		before, after db.LimitState
		replaces      bool
	}
	check := func(c test, dayShortened bool) {
		key := mustCreateKey(t, d, plainKey(t, "limited"), "limited: "+c.name)
		first := db.KeyLimitState{KeyID: key.ID, LimitState: c.before}
		second := db.KeyLimitState{KeyID: key.ID, LimitState: c.after, DayShortened: dayShortened}
		for _, s := range []db.KeyLimitState{first, second} {
			if err := d.SaveLimitStates(t.Context(), []db.KeyLimitState{s}); err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
		}
		want := c.before
		if c.replaces {
			want = c.after
		}
		if got, err := d.LimitState(t.Context(), key.ID); err != nil || got != want {
			t.Errorf("%s: got %+v, %v, want %+v", c.name, got, err, want)
		}
	}
	for _, c := range []test{
		{"the same with a different number of strikes", state(midnight, midnight, 7, 5), state(midnight, midnight, 7, 4), true},
		{"more of the day", state(0, midnight, 7, 5), state(0, midnight, 8, 0), true},
		{"less of the day", state(0, midnight, 7, 5), state(0, midnight, 6, 9), false},
		{"less of the next day", state(0, midnight, 7, 5), state(0, midnight+day, 1, 0), true},
		{"more of the day before", state(0, midnight, 7, 5), state(0, midnight-day, 99, 0), false},
		{"the next day after one that was shortened", state(0, midnight-1000, 7, 5), state(0, midnight, 1, 0), true},
		{"less of a day that was shortened and saved before", state(0, midnight-1000, 7, 5), state(0, midnight-1000, 6, 0), false},
		{"a ban, and less of the day", state(0, midnight, 7, 99), state(midnight, midnight, 6, 0), true},
		{"no ban, and more of the day", state(midnight, midnight, 7, 0), state(0, midnight, 8, 99), false},
		{"an earlier ban", state(midnight, midnight, 7, 0), state(midnight-1, midnight, 9, 0), false},
		{"nothing", state(midnight, midnight, 7, 0), db.LimitState{}, false},
	} {
		check(c, false)
	}
	for _, c := range []test{
		{"a day that was shortened", state(0, midnight, 7, 5), state(0, midnight-1000, 7, 0), true},
		{"a day that was shortened to end at midnight", state(0, midnight, 7, 5), state(0, midnight-day, 7, 0), true},
		{"the next day, which ends with the saved one", state(0, midnight, 7, 5), state(0, midnight, 1, 0), true},
		{"a ban, and a day that was shortened", state(0, midnight, 7, 5), state(midnight, midnight-1000, 7, 5), true},
		{"an earlier ban, and a day that was shortened", state(midnight, midnight, 7, 5), state(midnight-1, midnight-1000, 7, 5), false},
	} {
		check(c, true)
	}
}
