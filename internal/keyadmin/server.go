package keyadmin

import (
	"context"
	"iter"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/ratelimit"
)

// MaxServerGrace is the longest grace period that a server allows.
const MaxServerGrace = 90 * 24 * time.Hour

// Server is the keys of a server, over HTTP. The client needs a key with the
// permission admin.
type Server struct{ Client *client.Client }

func (s Server) Create(ctx context.Context, k animalstore.NewKey) (animalstore.Key, string, error) {
	created := client.NewKey{Name: k.Name, Plan: k.Plan, Permissions: k.Permissions, ExpiresAt: k.ExpiresAt}
	if k.Plan == animalstore.PlanEnterprise { // other plans have fixed limits
		created.Limits = k.Limits
	}
	key, err := s.Client.CreateKey(ctx, created)
	return key.Key, key.Secret, err
}

func (s Server) List(ctx context.Context, pageSize int) iter.Seq2[animalstore.Key, error] {
	return s.Client.ListKeys(ctx, client.PageQuery{PageSize: pageSize})
}

func (s Server) Show(ctx context.Context, id int64) (animalstore.Key, *ratelimit.Status, error) {
	key, err := s.Client.GetKey(ctx, id)
	return key, nil, err
}

func (s Server) Usage(ctx context.Context, id int64, hours int) (animalstore.Key, []animalstore.Usage, error) {
	key, err := s.Client.GetKey(ctx, id)
	if err != nil {
		return animalstore.Key{}, nil, err
	}
	usage, err := s.Client.GetKeyUsage(ctx, id, hours)
	return key, usage, err
}

func (s Server) Rotate(ctx context.Context, id int64, grace time.Duration) (animalstore.Key, string, error) {
	key, err := s.Client.RotateKey(ctx, id, grace)
	return key.Key, key.Secret, err
}

func (s Server) Update(ctx context.Context, id int64, patch animalstore.KeyPatch) (animalstore.Key, error) {
	return s.Client.UpdateKey(ctx, id, patch)
}

// Revoke also reads the key, for its name. That fails if it was the caller's own
// key, which is not an error.
func (s Server) Revoke(ctx context.Context, id int64) (animalstore.Key, error) {
	if err := s.Client.RevokeKey(ctx, id); err != nil {
		return animalstore.Key{}, err
	}
	key, err := s.Client.GetKey(ctx, id)
	if err != nil {
		return animalstore.Key{ID: id, RevokedAt: animalstore.At(time.Now())}, nil
	}
	return key, nil
}

func (s Server) Unban(ctx context.Context, id int64) (key animalstore.Key, lifted bool, err error) {
	var meta client.Meta
	key, err = s.Client.UnbanKey(ctx, id, client.ReadMeta(&meta))
	return key, meta.BanLifted, err
}
