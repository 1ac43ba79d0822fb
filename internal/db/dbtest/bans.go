package dbtest

import (
	"testing"

	"animalstore"
	"animalstore/internal/db"
)

// bansOfKeys: every read and change of a key sees the last saved ban, until it is
// lifted.
func bansOfKeys(t *testing.T, d db.DB) {
	key, other := mustCreateKey(t, d, plainKey(t, "one"), "one"), mustCreateKey(t, d, plainKey(t, "other"), "other")
	want := func(when string, ban animalstore.Ban) {
		t.Helper()
		one, err := d.Key(t.Context(), key.ID)
		if err != nil || one.Ban != ban {
			t.Errorf("%s: Key = %+v, %v, want ban %+v", when, one, err, ban)
		}
		all, err := d.Keys(t.Context(), db.Page{Limit: 10})
		if err != nil || len(all) != 2 || all[1].Ban != ban || all[0] != other {
			t.Errorf("%s: Keys = %+v, %v, want ban %+v on the second", when, all, err, ban)
		}
		check := func(k *animalstore.Key) error {
			if k.Ban != ban {
				t.Errorf("%s: a change sees %+v, want ban %+v", when, k, ban)
			}
			return errNotNow
		}
		d.UpdateKey(t.Context(), key.ID, noon, func(k *animalstore.Key, _ bool) error { return check(k) })
		d.RotateKey(t.Context(), key.ID, db.KeyRotation{Hash: db.KeyHash{1}, At: noon, OldUntil: later}, check)
	}
	want("before", animalstore.Ban{})
	first, second := animalstore.Ban{Until: later, Level: 2}, animalstore.Ban{Until: later, Level: 3}
	mustBan(t, d, key.ID, noon, first)
	want("banned", first)
	lifted := mustUpdateKey(t, d, key.ID, func(k *animalstore.Key) { k.Unban(noon, noon) })
	if lifted.Ban != (animalstore.Ban{}) {
		t.Errorf("UpdateKey = %+v, want no ban", lifted)
	}
	want("lifted", animalstore.Ban{})
	mustBan(t, d, key.ID, animalstore.AtMilli(noon.Milli()+1), second)
	want("banned again", second)
}

// oneEventPerSave: each new ban in a save adds an event, and saving it again none.
func oneEventPerSave(t *testing.T, d db.DB) {
	first, second := mustCreateKey(t, d, plainKey(t, "first"), "first"), mustCreateKey(t, d, plainKey(t, "second"), "second")
	log := eventLog{d: d, last: mustPublish(t, d)}
	next := animalstore.AtMilli(noon.Milli() + 1)
	state := func(key animalstore.Key, at animalstore.Time, ban animalstore.Ban) db.KeyLimitState {
		return db.KeyLimitState{KeyID: key.ID, LimitState: db.LimitState{BannedAt: at.Milli(), BannedUntil: ban.Until.Milli(), BanLevel: ban.Level}}
	}
	weak, strong := animalstore.Ban{Until: later, Level: 1}, animalstore.Ban{Until: later, Level: 2}
	states := []db.KeyLimitState{state(first, noon, weak), state(second, next, strong)}
	if err := d.SaveLimitStates(t.Context(), states); err != nil {
		t.Fatal(err)
	}
	first.Ban, second.Ban = weak, strong
	log.want(t, "two bans", []string{subject("key.banned", first.ID), subject("key.banned", second.ID)}, first, second)
	states[0] = state(first, next, strong)
	if err := d.SaveLimitStates(t.Context(), states); err != nil {
		t.Fatal(err)
	}
	first.Ban = strong
	log.want(t, "another ban of one key", []string{subject("key.banned", first.ID)}, first)
}
