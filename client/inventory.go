package client

import (
	"context"
	"net/http"

	"animalstore"
)

// GetInventory returns the number of pets in each status. The counts may be up to ten
// seconds old; [Meta.Age] is their age. In a category that doesn't exist there are no pets.
func (c *Client) GetInventory(ctx context.Context, q animalstore.InventoryQuery, options ...CallOption) (animalstore.Inventory, error) {
	op := operation{name: "getInventory", method: http.MethodGet, path: "/store/inventory"}
	if query := q.Values().Encode(); query != "" {
		op.path += "?" + query
	}
	type counts struct{ Available, Pending, Sold *int64 } // nil if it is missing
	n, err := receive(ctx, c, op, options, func(n *counts) bool { return n.Available != nil && n.Pending != nil && n.Sold != nil })
	if err != nil {
		return animalstore.Inventory{}, err
	}
	return animalstore.Inventory{Available: *n.Available, Pending: *n.Pending, Sold: *n.Sold}, nil
}
