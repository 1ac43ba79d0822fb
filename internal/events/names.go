package events

import (
	"context"
	"sync"
	"time"
)

// nameAge is how long the names of keys are kept in memory: half of what readers are
// promised, because a read may take a while.
const nameAge = 5 * time.Second

// keyNames keeps the names of keys for a short time.
type keyNames struct {
	mu    sync.Mutex
	byID  map[int64]*string // nil: there is no such key
	began time.Time         // when byID was empty
}

// messages returns messages for a reader, with the names of the keys that it may see.
func (h *Hub) messages(ctx context.Context, list []*shared, view View) ([]Message, error) {
	messages := make([]Message, len(list))
	wanted := map[int64]*string{}
	for i, s := range list {
		messages[i] = Message{shared: s, view: view}
		if s.KeyID != nil && view.form(&s.Event) != anonymous {
			wanted[*s.KeyID] = nil
		}
	}
	if len(wanted) == 0 {
		return messages, nil
	}
	if err := h.names.find(ctx, h.store, wanted); err != nil {
		return nil, err
	}
	for i := range messages {
		if id := messages[i].KeyID; id != nil {
			messages[i].keyName = wanted[*id]
		}
	}
	return messages, nil
}

// find sets the names of the keys whose ids wanted has.
func (n *keyNames) find(ctx context.Context, store Store, wanted map[int64]*string) error {
	missing := n.known(wanted)
	if len(missing) == 0 {
		return nil
	}
	names, err := store.KeyNames(ctx, missing)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, id := range missing {
		if text, ok := names[id]; ok {
			wanted[id] = &text
		}
		n.byID[id] = wanted[id]
	}
	return nil
}

// known sets the names that are in memory and returns the ids of the others.
func (n *keyNames) known(wanted map[int64]*string) (missing []int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if time.Since(n.began) > nameAge {
		n.byID, n.began = map[int64]*string{}, time.Now()
	}
	for id := range wanted {
		name, ok := n.byID[id]
		if wanted[id] = name; !ok {
			missing = append(missing, id)
		}
	}
	return missing
}
