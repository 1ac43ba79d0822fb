package db

import (
	"time"

	"animalstore"
)

// ClockSkew is how far apart the clocks of instances may be. Ids rise in the order of
// changes, but the times of events are those of the instances that made them: an event can
// have an earlier time than one before it, by at most this much.
const ClockSkew = time.Minute

// PositionSince returns the position that [Events.EventsSince] promises, in a store with the
// events after first up to newest. timeOf returns the time of one event in Unix
// milliseconds, or false if it has been dropped since. It is called at most once for each
// halving of the range: 20 times for a million events.
func PositionSince(first, newest int64, since animalstore.Time,
	timeOf func(id int64) (at int64, found bool, err error)) (position int64, err error) {
	// The event at the position is more than a minute too old, so every event before it is
	// too old as well, whatever the clocks. The one after it isn't, so it is a good place
	// to begin.
	oldest := since.Milli() - ClockSkew.Milliseconds()
	position = first
	end := newest + 1
	for end-position > 1 {
		middle := position + (end-position)/2
		at, found, err := timeOf(middle)
		if err != nil {
			return 0, err
		}
		if found && at >= oldest {
			end = middle
		} else {
			position = middle
		}
	}
	return position, nil
}
