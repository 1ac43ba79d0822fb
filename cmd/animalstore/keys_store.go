package main

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/cli"
	"animalstore/internal/db"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/keys"
	"animalstore/internal/ratelimit"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

// keyLocation is the flags that say where the keys are.
type keyLocation struct {
	database databaseFlag
	server   connection
}

// onServer decides between the two. It never guesses: a change in the wrong place does
// harm.
func (at *keyLocation) onServer(cmd *cobra.Command) (bool, error) {
	url, database := cli.Given(cmd, "url"), cli.Given(cmd, "database")
	switch {
	case url && database:
		return false, cli.Usagef("use --url or --database, not both")
	case url || database:
		return url, nil
	case at.server.url != "" && cmd.Flag("url").Changed && cmd.Flag("database").Changed:
		return false, cli.Usagef("%s and %s are both set: choose with --url or --database", cli.Variable("url"), cli.Variable("database"))
	}
	return at.server.url != "" && cmd.Flag("url").Changed, nil
}

// do runs f on the keys.
func (at *keyLocation) do(cmd *cobra.Command, f func(keyStore, *terminal.Printer) error) error {
	onServer, err := at.onServer(cmd)
	if err != nil {
		return err
	}
	if !onServer {
		return at.withDatabase(cmd, func(store db.DB) error {
			return f(databaseKeys{store}, newPrinter(cmd))
		})
	}
	err = at.server.do(cmd, func(s invocation) error { return f(serverKeys{s.Client}, s.Printer) })
	var worded cliError
	if errors.As(err, &worded) && worded.code == exitCredential {
		worded.text += ". On the server's machine, --database needs no key"
		return worded
	}
	return err
}

// withDatabase runs f on the database, which a server may be using. Only create and
// import make a new one, after asking: a server that uses another database would never
// see the key.
func (at *keyLocation) withDatabase(cmd *cobra.Command, f func(db.DB) error) error {
	adds := cmd.Name() == "create" || cmd.Name() == "import"
	store, err := at.database.open(cmd.Context(), sqlite.Options{MustExist: true})
	var failed *db.OpenError
	if adds && errors.As(err, &failed) && failed.Reason == db.Absent {
		if err := confirmNewStore(cmd, failed); err != nil {
			return err
		}
		store, err = at.database.open(cmd.Context(), sqlite.Options{})
	}
	if err != nil {
		return err
	}
	return errors.Join(f(store), store.Close())
}

// confirmNewStore returns an error unless --yes or a person agrees to a new store.
// absent says which one is missing.
func confirmNewStore(cmd *cobra.Command, absent *db.OpenError) error {
	if yes, _ := cmd.Flags().GetBool("yes"); yes {
		return nil
	}
	if !needsConfirmation(cmd) {
		return fmt.Errorf("%w: choose the server's database with --database, or create a new store with --yes", absent)
	}
	return requireConfirmation(cmd, absent.Error()+". Create a new store? Its keys work only with a server on that store.")
}

// onKey makes cmd call run with the id in its argument. What can be checked without
// the keys belongs in cmd.PreRunE.
func (at *keyLocation) onKey(cmd *cobra.Command, run func(cmd *cobra.Command, store keyStore, p *terminal.Printer, id int64) error) *cobra.Command {
	cmd.Args = cli.OneID("key", "keys")
	jsonFlag(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		id := cli.IDs(args)[0]
		return at.do(cmd, func(store keyStore, p *terminal.Printer) error {
			err := run(cmd, store, p, id)
			var coded *animalstore.Error
			if errors.Is(err, db.ErrNotFound) || errors.As(err, &coded) && coded.Code == animalstore.KeyNotFound {
				return cliError{err, fmt.Sprintf(`there is no key with id %d: "animalstore keys list" shows the keys`, id), exitNotFound}
			}
			return err
		})
	}
	return cmd
}

// keyStore is the keys of a store, in a database or behind a server.
type keyStore interface {
	// Create adds a key that passed Validate, and returns its secret.
	Create(context.Context, animalstore.NewKey) (key animalstore.Key, secret string, err error)
	// List lists keys, newest first.
	List(ctx context.Context, pageSize int) iter.Seq2[animalstore.Key, error]
	// Show returns a key, and its current limits if they are known.
	Show(ctx context.Context, id int64) (animalstore.Key, *ratelimit.Status, error)
	// Usage is by the hour, newest first.
	Usage(ctx context.Context, id int64, hours int) (animalstore.Key, []animalstore.Usage, error)
	// Rotate gives a key a new secret. The old ones keep working for the grace
	// period.
	Rotate(ctx context.Context, id int64, grace time.Duration) (key animalstore.Key, secret string, err error)
	// Update changes a key.
	Update(ctx context.Context, id int64, patch animalstore.KeyPatch) (animalstore.Key, error)
	// Revoke disables a key permanently.
	Revoke(ctx context.Context, id int64) (animalstore.Key, error)
	// Unban lifts the ban of a key, and reports whether there was one.
	Unban(ctx context.Context, id int64) (key animalstore.Key, lifted bool, err error)
}

// databaseKeys are the keys in a database, which only the operator can access. It may
// remove the last key with the permission admin, because the operator can always
// create another.
type databaseKeys struct{ store db.DB }

func (d databaseKeys) Create(ctx context.Context, k animalstore.NewKey) (animalstore.Key, string, error) {
	secret := keys.Mint(k.Environment)
	key, err := d.Import(ctx, k, secret)
	return key, secret, err
}

// Import adds a key whose secret was created elsewhere. See [keys.ValidateForeign].
func (d databaseKeys) Import(ctx context.Context, k animalstore.NewKey, secret string) (animalstore.Key, error) {
	key, err := d.store.CreateKey(ctx, k, keys.Hash(secret), now())
	if errors.Is(err, db.ErrExists) {
		return animalstore.Key{}, errors.New("this key already exists in the database")
	}
	if err != nil {
		return animalstore.Key{}, fmt.Errorf("store the key: %w", err)
	}
	return key, nil
}

func (d databaseKeys) List(ctx context.Context, pageSize int) iter.Seq2[animalstore.Key, error] {
	return func(yield func(animalstore.Key, error) bool) {
		at := db.Page{Limit: pageSize}
		for {
			page, err := d.store.Keys(ctx, at)
			if err != nil {
				yield(animalstore.Key{}, fmt.Errorf("list the keys: %w", err))
				return
			}
			for _, k := range page {
				if !yield(k.At(time.Now()), nil) {
					return
				}
			}
			if len(page) < pageSize {
				return
			}
			at.After = page[len(page)-1].ID
		}
	}
}

func (d databaseKeys) Show(ctx context.Context, id int64) (animalstore.Key, *ratelimit.Status, error) {
	key, err := d.store.Key(ctx, id)
	if err != nil {
		return animalstore.Key{}, nil, err
	}
	state, err := d.store.LimitState(ctx, id)
	if err != nil {
		return animalstore.Key{}, nil, err
	}
	limits := ratelimit.StatusOf(state, &key, time.Now())
	return key.At(time.Now()), &limits, nil
}

func (d databaseKeys) Usage(ctx context.Context, id int64, hours int) (animalstore.Key, []animalstore.Usage, error) {
	key, err := d.store.Key(ctx, id)
	if err != nil {
		return animalstore.Key{}, nil, err
	}
	since := time.Now().Truncate(time.Hour).Add(-time.Duration(hours-1) * time.Hour)
	usage, err := d.store.Usage(ctx, id, animalstore.At(since))
	return key, usage, err
}

func (d databaseKeys) Rotate(ctx context.Context, id int64, grace time.Duration) (animalstore.Key, string, error) {
	key, err := d.store.Key(ctx, id)
	if err != nil {
		return animalstore.Key{}, "", err
	}
	secret, at := keys.Mint(key.Environment), now()
	key, err = d.store.RotateKey(ctx, id, db.KeyRotation{Hash: keys.Hash(secret), At: at, OldUntil: animalstore.At(at.Add(grace))}, nil)
	return key.At(at.Time), secret, err
}

func (d databaseKeys) Update(ctx context.Context, id int64, patch animalstore.KeyPatch) (animalstore.Key, error) {
	return d.change(ctx, id, func(k *animalstore.Key) error { return patch.Apply(k, time.Now()) })
}

func (d databaseKeys) Revoke(ctx context.Context, id int64) (animalstore.Key, error) {
	return d.change(ctx, id, func(k *animalstore.Key) error { k.Revoke(now()); return nil })
}

func (d databaseKeys) Unban(ctx context.Context, id int64) (key animalstore.Key, lifted bool, err error) {
	_, limits, err := d.Show(ctx, id)
	if err != nil {
		return animalstore.Key{}, false, err
	}
	key, err = d.change(ctx, id, func(k *animalstore.Key) error {
		k.Unban(now(), limits.BannedAt)
		return nil
	})
	return key, !limits.BannedUntil.IsZero(), err
}

func (d databaseKeys) change(ctx context.Context, id int64, change func(*animalstore.Key) error) (animalstore.Key, error) {
	key, err := d.store.UpdateKey(ctx, id, now(), func(k *animalstore.Key, _ bool) error { return change(k) })
	return key.At(time.Now()), err
}

func now() animalstore.Time { return animalstore.At(time.Now()) }

// serverKeys are the keys of a server, over HTTP. The client needs a key with the
// permission admin.
type serverKeys struct{ client *client.Client }

func (s serverKeys) Create(ctx context.Context, k animalstore.NewKey) (animalstore.Key, string, error) {
	created := client.NewKey{Name: k.Name, Plan: k.Plan, Permissions: k.Permissions, Networks: k.Networks, ExpiresAt: k.ExpiresAt}
	if k.Plan == animalstore.PlanEnterprise { // other plans have fixed limits
		created.Limits = k.Limits
	}
	key, err := s.client.CreateKey(ctx, created)
	return key.Key, key.Secret, err
}

func (s serverKeys) List(ctx context.Context, pageSize int) iter.Seq2[animalstore.Key, error] {
	return s.client.ListKeys(ctx, client.PageSize(pageSize))
}

func (s serverKeys) Show(ctx context.Context, id int64) (animalstore.Key, *ratelimit.Status, error) {
	key, err := s.client.GetKey(ctx, id)
	return key, nil, err
}

func (s serverKeys) Usage(ctx context.Context, id int64, hours int) (animalstore.Key, []animalstore.Usage, error) {
	key, err := s.client.GetKey(ctx, id)
	if err != nil {
		return animalstore.Key{}, nil, err
	}
	usage, err := s.client.GetKeyUsage(ctx, id, hours)
	return key, usage, err
}

func (s serverKeys) Rotate(ctx context.Context, id int64, grace time.Duration) (animalstore.Key, string, error) {
	key, err := s.client.RotateKey(ctx, id, grace)
	return key.Key, key.Secret, err
}

func (s serverKeys) Update(ctx context.Context, id int64, patch animalstore.KeyPatch) (animalstore.Key, error) {
	return s.client.UpdateKey(ctx, id, patch)
}

// Revoke also reads the key, for its name. That fails if it was the caller's own
// key, which is not an error.
func (s serverKeys) Revoke(ctx context.Context, id int64) (animalstore.Key, error) {
	if err := s.client.RevokeKey(ctx, id); err != nil {
		return animalstore.Key{}, err
	}
	key, err := s.client.GetKey(ctx, id)
	if err != nil {
		return animalstore.Key{ID: id, RevokedAt: animalstore.At(time.Now())}, nil
	}
	return key, nil
}

func (s serverKeys) Unban(ctx context.Context, id int64) (key animalstore.Key, lifted bool, err error) {
	var meta client.Meta
	key, err = s.client.UnbanKey(ctx, id, client.ReadMeta(&meta))
	return key, meta.BanLifted, err
}
