package console

import (
	"encoding/json"
	"strconv"

	"animalstore"
	"animalstore/client"
)

const (
	// listedKeys is how many keys one call lists, the newest first: all, in most stores.
	listedKeys = 100
	// keyLookups is how many other keys are looked up one by one.
	keyLookups = 3
)

// nameActors sets who made the change of each row.
func (v *visit) nameActors(f *feed) error {
	f.names = map[int64]string{v.key.ID: v.key.Name}
	if v.may(admin) {
		if err := v.nameKeys(f); err != nil {
			return err
		}
	}
	for i := range f.Rows {
		r := &f.Rows[i]
		if r.By = actor(r.Event, f.names); r.KeyID != nil && v.may(admin) {
			r.ByPath = keyPath(*r.KeyID)
		}
	}
	return nil
}

// actor says who made a change. Without admin, the API doesn't say which other key did.
func actor(e animalstore.Event, names map[int64]string) string {
	switch {
	case e.KeyID != nil:
		if name := names[*e.KeyID]; name != "" {
			return name
		}
		return "key " + strconv.FormatInt(*e.KeyID, 10)
	case e.Actor == animalstore.ActorKey:
		return "another key"
	case e.Actor == animalstore.ActorCommandLine:
		return "command line"
	}
	return "the service"
}

// nameKeys adds the names of the keys that made changes, and of those that may make one
// while the page is open. It makes only a few calls: the remaining keys are shown by
// their id.
func (v *visit) nameKeys(f *feed) error {
	if f.After == 0 && f.unnamed() == 0 {
		return nil
	}
	listed := 0
	for key, err := range v.api.ListKeys(v.r.Context(), client.PageQuery{PageSize: listedKeys}) {
		if err != nil {
			return err
		}
		f.names[key.ID] = key.Name
		if listed++; listed == listedKeys {
			break
		}
	}
	for range keyLookups {
		id := f.unnamed()
		if id == 0 {
			return nil
		}
		key, err := v.api.GetKey(v.r.Context(), id)
		if err != nil && codeOf(err) != animalstore.KeyNotFound {
			return err
		}
		f.names[id] = key.Name
	}
	return nil
}

// unnamed returns the first key whose name isn't known yet, or 0.
func (f *feed) unnamed() int64 {
	for _, r := range f.Rows {
		if r.KeyID == nil {
			continue
		}
		if _, known := f.names[*r.KeyID]; !known {
			return *r.KeyID
		}
	}
	return 0
}

// Names are the names of keys by id, as JSON: the script needs them for new events.
func (f feed) Names() (string, error) {
	names, err := json.Marshal(f.names)
	return string(names), err
}
