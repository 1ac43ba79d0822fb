package main

import (
	"context"
	"errors"
	"iter"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/ratelimit"
)

// serverKeys are keys over HTTP, which takes a key with the permission admin.
type serverKeys struct{ calls *client.Client }

func (s serverKeys) create(ctx context.Context, k animalstore.NewKey) (animalstore.Key, string, error) {
	created := client.NewKey{Name: k.Name, Plan: k.Plan, Permissions: k.Permissions, ExpiresAt: k.ExpiresAt}
	if k.Plan == animalstore.PlanEnterprise { // other plans have fixed limits
		created.Limits = k.Limits
	}
	key, err := s.calls.CreateKey(ctx, created)
	return key.Key, key.Secret, err
}

func (s serverKeys) list(ctx context.Context, pageSize int) iter.Seq2[animalstore.Key, error] {
	return s.calls.ListKeys(ctx, client.PageQuery{PageSize: pageSize})
}

func (s serverKeys) show(ctx context.Context, id int64) (animalstore.Key, *ratelimit.Status, error) {
	key, err := s.calls.GetKey(ctx, id)
	return key, nil, err
}

func (s serverKeys) usage(ctx context.Context, id int64, hours int) (animalstore.Key, []animalstore.Usage, error) {
	key, err := s.calls.GetKey(ctx, id)
	if err != nil {
		return animalstore.Key{}, nil, err
	}
	usage, err := s.calls.GetKeyUsage(ctx, id, hours)
	return key, usage, err
}

func (s serverKeys) rotate(ctx context.Context, id int64, grace time.Duration) (animalstore.Key, string, error) {
	const maxGrace = 90 * 24 * time.Hour
	if grace > maxGrace {
		return animalstore.Key{}, "", usageError{errors.New("--grace must be at most 90d, which is the most a server allows")}
	}
	key, err := s.calls.RotateKey(ctx, id, grace)
	return key.Key, key.Secret, err
}

func (s serverKeys) setPlan(ctx context.Context, id int64, plan animalstore.Plan, custom animalstore.Limits) (animalstore.Key, error) {
	patch := animalstore.KeyPatch{Plan: &plan}
	if custom != (animalstore.Limits{}) {
		patch.Limits = &custom
	}
	return s.calls.UpdateKey(ctx, id, patch)
}

// revoke also reads the key, for its name. That fails if it was the caller's own
// key, which is not an error.
func (s serverKeys) revoke(ctx context.Context, id int64) (animalstore.Key, error) {
	if err := s.calls.RevokeKey(ctx, id); err != nil {
		return animalstore.Key{}, err
	}
	key, err := s.calls.GetKey(ctx, id)
	if err != nil {
		return animalstore.Key{ID: id, RevokedAt: animalstore.At(time.Now())}, nil
	}
	return key, nil
}

func (s serverKeys) unban(ctx context.Context, id int64) (key animalstore.Key, lifted bool, err error) {
	var meta client.Meta
	key, err = s.calls.UnbanKey(ctx, id, client.ReadMeta(&meta))
	return key, meta.BanLifted, err
}
