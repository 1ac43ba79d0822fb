package client

import (
	"context"
	"net/http"

	"animalstore"
)

// GetStatus returns the state of the server that responds: version, database, size,
// cache, last backup, and the requests of the last hour. It needs a key with the admin
// permission.
func (c *Client) GetStatus(ctx context.Context, options ...CallOption) (animalstore.Status, error) {
	op := operation{name: "getStatus", method: http.MethodGet, path: "/status"}
	return receive(ctx, c, op, options, func(s *animalstore.Status) bool { return s.Engine != "" && s.Deployment != "" })
}
