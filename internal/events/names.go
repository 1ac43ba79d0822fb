package events

import (
	"context"
	"sync"
	"time"
)

const (
	// nameAge is how long the name of a key is kept in memory.
	nameAge = 5 * time.Second // half of what readers are promised, because a read may take a while
	// maxNames is how many names are kept before old ones are dropped.
	maxNames = 1000
)

// keyNames keeps the names of keys for a short time.
type keyNames struct {
	mu   sync.Mutex
	byID map[int64]keyName
}

type keyName struct {
	text  *string // nil: there is no such key
	until time.Time
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
	now := time.Now()
	missing := n.known(wanted, now)
	if len(missing) == 0 {
		return nil
	}
	names, err := store.KeyNames(ctx, missing)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.byID) > maxNames {
		for id, name := range n.byID {
			if now.After(name.until) {
				delete(n.byID, id)
			}
		}
	}
	for _, id := range missing {
		name := keyName{until: now.Add(nameAge)}
		if text, ok := names[id]; ok {
			name.text = &text
		}
		n.byID[id], wanted[id] = name, name.text
	}
	return nil
}

// known sets the names that are in memory and returns the ids of the others.
func (n *keyNames) known(wanted map[int64]*string, now time.Time) (missing []int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for id := range wanted {
		if name, ok := n.byID[id]; ok && now.Before(name.until) {
			wanted[id] = name.text
		} else {
			missing = append(missing, id)
		}
	}
	return missing
}
