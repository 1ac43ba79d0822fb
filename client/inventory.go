package client

import (
	"context"
	"fmt"
	"net/http"

	"animalstore"
)

// InventoryQuery selects the pets to count. The zero value counts all of them.
type InventoryQuery struct {
	CategoryID *int64 // new(int64(7)) for category 7: 0 is a valid category
}

// GetInventory returns the number of pets in each status. The counts may be up to ten
// seconds old; [Meta.Age] is their age. In a category that doesn't exist there are no pets.
func (c *Client) GetInventory(ctx context.Context, q InventoryQuery, options ...CallOption) (animalstore.Inventory, error) {
	op := operation{name: "getInventory", method: http.MethodGet, path: "/store/inventory"}
	if q.CategoryID != nil {
		op.path += fmt.Sprintf("?categoryId=%d", *q.CategoryID)
	}
	type counts struct{ Available, Pending, Sold *int64 } // nil if it is missing
	n, err := receive(ctx, c, op, options, func(n *counts) bool { return n.Available != nil && n.Pending != nil && n.Sold != nil })
	if err != nil {
		return animalstore.Inventory{}, err
	}
	return animalstore.Inventory{Available: *n.Available, Pending: *n.Pending, Sold: *n.Sold}, nil
}
