package client

import (
	"context"
	"iter"

	"animalstore"
)

// ListFailures lists the requests that got an error response in the last seven days,
// newest first: those of the client's key or, with the admin permission, of all keys. It
// needs no other permission. A request appears within two seconds.
func (c *Client) ListFailures(ctx context.Context, q animalstore.FailureQuery,
	options ...CallOption) iter.Seq2[animalstore.Failure, error] {
	return list(ctx, c, "listFailures", "/failures", q.Values(), options, isFailure)
}

func isFailure(f *animalstore.Failure) bool { return f.ID > 0 && f.Code != "" && f.Status >= 400 }
