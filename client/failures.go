package client

import (
	"context"
	"iter"
	"net/url"
	"strconv"

	"animalstore"
)

// FailureQuery selects failed requests. The zero value selects all that the client's key
// may see.
type FailureQuery struct {
	KeyID     int64 // another key than the client's needs the admin permission
	Code      animalstore.Code
	RequestID string           // the X-Request-Id of the response, as in [Error]
	Since     animalstore.Time // only from this time on
	PageSize  int              // see [PageQuery]
}

// ListFailures lists the requests that were answered with an error in the last seven days,
// newest first: those of the client's key or, with the admin permission, of all keys. It
// needs no other permission. A request appears within two seconds.
func (c *Client) ListFailures(ctx context.Context, q FailureQuery, options ...CallOption) iter.Seq2[animalstore.Failure, error] {
	query := url.Values{}
	if q.KeyID != 0 {
		query.Set("keyId", strconv.FormatInt(q.KeyID, 10))
	}
	if q.Code != "" {
		query.Set("code", string(q.Code))
	}
	if q.RequestID != "" {
		query.Set("requestId", q.RequestID)
	}
	if !q.Since.IsZero() {
		query.Set("since", q.Since.String())
	}
	return list(ctx, c, "listFailures", "/failures", query, q.PageSize, options, isFailure)
}

func isFailure(f *animalstore.Failure) bool { return f.ID > 0 && f.Code != "" && f.Status >= 400 }
