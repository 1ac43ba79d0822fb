package keys

import (
	"context"
	"time"
)

// A cached key is valid for freshFor after its lookup. If it has to be looked up again
// after that, thousands of busy keys cost thousands of lookups a second. So the version
// of all keys is read about twice a second, and as long as it doesn't change, cached keys
// were still correct when it was last read. If it can't be read, they become stale and
// are looked up one by one.

// lookEvery is how often the version is read while there are requests. The rest of
// freshFor is for the store to respond.
const lookEvery = 400 * time.Millisecond

// version is the latest known version of the store's keys.
type version struct {
	value   string
	changes int64     // how often another value than before was read; 0: none was read yet
	read    time.Time // when reading it started
	tried   time.Time // when the latest attempt to read it started
}

// lookIfDue starts a look if the latest one is too long ago. It doesn't wait for it, so
// no request takes longer because of it.
func (c *Checker) lookIfDue(now time.Time) {
	age := now.Sub(c.version.Load().tried)
	if age >= 0 && age < lookEvery || !c.looking.CompareAndSwap(false, true) {
		return
	}
	go func() {
		defer c.looking.Store(false)
		c.look(now)
	}()
}

// look reads the version. The caller must have set looking.
func (c *Checker) look(now time.Time) {
	ctx, cancel := context.WithTimeout(context.Background(), freshFor) // later it is of no use
	defer cancel()
	next := *c.version.Load()
	next.tried = now
	if value, err := c.store.KeysVersion(ctx); err == nil {
		next.read = now
		if value != next.value {
			next.value = value
			next.changes++
		}
	}
	c.version.Store(&next)
}
