package keys

import (
	"context"
	"time"
)

// A cached key is valid for freshFor after its lookup. Looking up every busy
// key again after that would cost thousands of lookups a second. So the version
// of all keys is read about twice a second: while it doesn't change, cached
// keys are known to have been correct when it was last read. If it can't be
// read, cached keys become stale and are looked up one by one.

// refreshEvery is how often the version is read while requests arrive. The rest
// of freshFor is left for the store to respond.
const refreshEvery = 400 * time.Millisecond

// version is the latest known version of the store's keys.
type version struct {
	value   string
	changes int64     // how often the value changed; 0 before the first read
	read    time.Time // when reading it started
	tried   time.Time // when the latest attempt to read it started
}

// refreshIfDue starts reading the version if the last attempt is too long ago.
// It doesn't wait, so it delays no request.
func (c *Checker) refreshIfDue(now time.Time) {
	age := now.Sub(c.version.Load().tried)
	if (age < 0 || age >= refreshEvery) && c.refreshing.CompareAndSwap(false, true) {
		go c.refresh(now)
	}
}

// Changes reads the version, unless somebody else is doing so, and returns how often it
// has changed.
func (c *Checker) Changes() int64 {
	if c.refreshing.CompareAndSwap(false, true) {
		c.refresh(c.now())
	}
	return c.version.Load().changes
}

// refresh reads the version. The caller must have set refreshing.
func (c *Checker) refresh(now time.Time) {
	defer c.refreshing.Store(false)
	ctx, cancel := context.WithTimeout(context.Background(), freshFor) // a later result would be useless
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
