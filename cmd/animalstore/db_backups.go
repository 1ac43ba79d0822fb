package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"animalstore"
	"animalstore/internal/cli"
	"animalstore/internal/db"
	"animalstore/internal/db/postgres"
	"animalstore/internal/db/sqlite"
	"animalstore/internal/db/transfer"
	"animalstore/internal/db/transfer/s3"
	"animalstore/internal/terminal"

	"github.com/spf13/cobra"
)

// bucketHelp describes the addresses of buckets in the help of commands.
const bucketHelp = `The bucket of s3://BUCKET/PREFIX is at Amazon, or at the https address in
AWS_ENDPOINT_URL. AWS_REGION, AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are
read too, also from files (AWS_SECRET_ACCESS_KEY_FILE), or
AWS_SHARED_CREDENTIALS_FILE. Set AWS_S3_FORCE_PATH_STYLE to true or false if the
service needs the bucket in the path, or in the host name.`

// openBucket returns the bucket at an address, and for the address of a single backup its
// name.
func openBucket(address string) (bucket *s3.Bucket, name string, err error) {
	a, err := s3.ParseAddress(address)
	if err != nil {
		return nil, "", err
	}
	place, name, _ := a.Snapshot()
	config, err := bucketConfig()
	if err != nil {
		return nil, "", err
	}
	if bucket, err = s3.New(place, config); err != nil {
		err = fmt.Errorf("AWS_ENDPOINT_URL: %w", err)
	}
	return bucket, name, err
}

// bucketConfig reads the variables that other programs use for S3 too.
func bucketConfig() (c s3.Config, err error) {
	lookup := func(names ...string) string {
		for _, name := range names {
			value, _, e := cli.LookupEnvironment(name)
			if err == nil {
				err = e
			}
			if value != "" {
				return value
			}
		}
		return ""
	}
	c = s3.Config{
		Endpoint:     lookup("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"),
		Region:       lookup("AWS_REGION", "AWS_DEFAULT_REGION"),
		AccessKey:    lookup("AWS_ACCESS_KEY_ID"),
		SecretKey:    lookup("AWS_SECRET_ACCESS_KEY"),
		SessionToken: lookup("AWS_SESSION_TOKEN"),
		Profile:      os.Getenv("AWS_PROFILE"),
	}
	if style := lookup("AWS_S3_FORCE_PATH_STYLE"); style != "" {
		inPath, e := strconv.ParseBool(style)
		if e != nil {
			err = cli.Usagef("AWS_S3_FORCE_PATH_STYLE must be true or false, not %q", style)
		}
		c.AddressingStyle = map[bool]string{true: "path", false: "virtual"}[inPath]
	}
	switch {
	case err != nil:
		return c, err
	case (c.AccessKey == "") != (c.SecretKey == ""):
		return c, cli.Usagef("set both AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY")
	case c.AccessKey == "":
		c.CredentialsFile, err = credentialsFile()
	}
	return c, err
}

// credentialsFile returns the path of the AWS command line's file.
func credentialsFile() (string, error) {
	file := os.Getenv("AWS_SHARED_CREDENTIALS_FILE")
	if home, err := os.UserHomeDir(); file == "" && err == nil {
		file = filepath.Join(home, ".aws", "credentials")
	}
	if _, err := os.ReadFile(file); err != nil {
		return "", cli.Usagef("a bucket needs credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SHARED_CREDENTIALS_FILE (%w)", err)
	}
	return file, nil
}

// openBackupsBucket returns the bucket at an address that isn't the one of a single backup.
func openBackupsBucket(address string) (*s3.Bucket, error) {
	bucket, name, err := openBucket(address)
	if err == nil && name != "" {
		err = errors.New("give the directory or bucket of backups, not the address of one")
	}
	return bucket, err
}

// backUpToBucket makes a backup and uploads it.
func backUpToBucket(ctx context.Context, store, address string, began time.Time, line *terminal.Line,
	p *terminal.Printer) (copyResult, error) {
	bucket, err := openBackupsBucket(address)
	if err != nil {
		return copyResult{}, cli.Usagef("%w", err)
	}
	// The copy may take minutes: first find out whether the bucket can be used.
	id, err := beginBackup(ctx, bucket, store, began, p)
	if err != nil {
		return copyResult{}, err
	}
	staged, err := transfer.Stage(ctx, sqlite.Files{}, store, "command", id, began, &copyProgress{line: line})
	line.Show("")
	if err != nil {
		return copyResult{}, err
	}
	defer staged.Remove()
	err = transfer.Upload(ctx, bucket, staged.Snapshot, staged.Path, showBytes(line, staged.Size))
	return copyResult{File: bucket.Of(staged.Name), Bytes: staged.Size, Checks: staged.Checks}, err
}

// beginBackup stores that a backup begins, and returns the id of the store. It may be new.
func beginBackup(ctx context.Context, bucket *s3.Bucket, store string, at time.Time, p *terminal.Printer) (id string, err error) {
	if _, err := bucket.List(ctx); err != nil {
		return "", err
	}
	source, err := sqlite.Files{}.Open(ctx, store) // because Open would create tables in an empty file
	if err != nil {
		return "", err
	}
	if err := source.Close(); err != nil {
		return "", err
	}
	d, err := sqlite.Open(ctx, store, sqlite.Options{MustExist: true})
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, d.Close()) }()
	i, err := transfer.Identify(ctx, d, bucket, at)
	if err != nil {
		return "", err
	}
	if i.Copied.Name != "" {
		p.Note("This store is a copy of another, or was copied: it didn't make %s. It now has the id %s, and keeps those backups.", bucket.Of(i.Copied.Name), i.ID)
	}
	return i.ID, d.BeginBackup(ctx, db.Begun{Remote: at})
}

// foundBackup is a backup to restore.
type foundBackup struct {
	transfer.Snapshot // empty for a file with another name
	address           string
	bucket            *s3.Bucket // nil for a file
	ahead             []string   // the addresses of those in its place that are dated in the future
}

func (b foundBackup) String() string {
	if b.At.IsZero() {
		return b.address
	}
	return b.address + ", made " + terminal.DateTime(b.At) + " UTC,"
}

// findBackup returns the backup at an address: the one that it names, or the newest there if
// all are of one store.
func findBackup(ctx context.Context, address string, now time.Time) (foundBackup, error) {
	if !s3.Is(address) {
		info, err := os.Stat(address)
		if err != nil {
			return foundBackup{}, fmt.Errorf("the backup cannot be read: %w", err)
		}
		if !info.IsDir() {
			b := foundBackup{address: address}
			b.Snapshot, _ = transfer.ParseSnapshot(filepath.Base(address))
			if b.At.After(now) {
				b.ahead = []string{address}
			}
			return b, nil
		}
	}
	p, name, err := openPlace(address)
	if err != nil {
		return foundBackup{}, err
	}
	found, err := transfer.Snapshots(ctx, p, now)
	if err != nil {
		return foundBackup{}, err
	}
	if name != "" {
		found = slices.DeleteFunc(found, func(s transfer.Snapshot) bool { return s.Name != name })
	}
	if len(found) == 0 {
		return foundBackup{}, fmt.Errorf("there is no backup at %s: \"animalstore db backups list\" shows the available ones", address)
	}
	for _, s := range found {
		if s.Store != found[0].Store {
			return foundBackup{}, cli.Usagef("%s has backups of more than one store: choose one with \"animalstore db backups list %s\"", address, address)
		}
	}
	return foundBackup{found[0], p.of(found[0].Name), p.bucket, p.ahead(found)}, nil
}

// backupPlace is a directory or bucket.
type backupPlace struct {
	transfer.Place
	of     func(name string) string // the address of a backup there
	bucket *s3.Bucket               // nil for a directory
}

// openPlace returns the place at an address, and for the address of a single backup in a bucket
// its name.
func openPlace(address string) (p backupPlace, name string, err error) {
	if !s3.Is(address) {
		return backupPlace{transfer.Directory(address), func(name string) string { return filepath.Join(address, name) }, nil}, "", nil
	}
	bucket, name, err := openBucket(address)
	if err != nil {
		return backupPlace{}, "", cli.Usagef("%w", err)
	}
	return backupPlace{bucket, bucket.Of, bucket}, name, nil
}

// ahead returns the addresses of the backups that are dated in the future.
func (p backupPlace) ahead(found []transfer.Snapshot) (addresses []string) {
	for _, s := range found {
		if s.Ahead {
			addresses = append(addresses, p.of(s.Name))
		}
	}
	return addresses
}

// noteAhead points out backups that are dated in the future.
func noteAhead(p *terminal.Printer, addresses []string) {
	for _, address := range addresses {
		p.Note("%s is dated in the future, so it counts as the oldest: a clock was ahead, or this machine's is behind.", address)
	}
}

func dbBackupsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:     "backups",
		Short:   "List the backups in a directory or bucket",
		Long:    "List the backups in a directory or bucket.",
		Example: "  animalstore db backups list .",
	}
	return cli.Group(cmd, dbBackupsListCommand())
}

// storedBackup is what the list of backups shows of one.
type storedBackup struct {
	Address string           `json:"address"` // for restore
	Store   string           `json:"store"`
	At      animalstore.Time `json:"at"`
	Bytes   int64            `json:"bytes"`
}

var backupColumns = []terminal.Column[storedBackup]{
	{Title: "ADDRESS", Text: func(b storedBackup) string { return b.Address }},
	{Title: "MADE", Time: func(b storedBackup) time.Time { return b.At.Time }, Relative: true},
	{Title: "SIZE", Text: func(b storedBackup) string { return megabytes(b.Bytes) }},
	{Title: "STORE", Text: func(b storedBackup) string { return b.Store }},
}

func dbBackupsListCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list DIRECTORY|s3://BUCKET/PREFIX",
		Short: "List backups, newest first",
		Long: `List the backups that "serve --backup-dir" and "--backup-to" made, the newest
first, with the address that "db restore" takes. STORE is the id of the store:
a restored or copied store has a new one.

` + bucketHelp,
		Example: `  animalstore db backups list .
  animalstore db backups list s3://acme-backups/shop`,
		Args:              cli.OneFile("give a directory or bucket, such as: animalstore db backups list s3://acme-backups/shop"),
		ValidArgsFunction: cli.CompleteFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			columns, err := chosenColumns(cmd, backupColumns)
			if err != nil {
				return err
			}
			return listBackups(cmd.Context(), args[0], newPrinter(cmd), columns)
		},
	}
	columnsFlag(cmd, backupColumns)
	jsonFlag(cmd)
	return cmd
}

func listBackups(ctx context.Context, address string, p *terminal.Printer, columns []terminal.Column[storedBackup]) error {
	place, name, err := openPlace(address)
	if err == nil && name != "" {
		err = cli.Usagef("give the directory or bucket of backups, not the address of one")
	}
	if err != nil {
		return err
	}
	found, err := transfer.Snapshots(ctx, place, time.Now())
	if err != nil {
		return fmt.Errorf("list the backups in %s: %w", address, err)
	}
	if len(found) == 0 && !p.JSON {
		p.Note("No backups found in %s", strings.TrimSuffix(address, "/"))
	}
	noteAhead(p, place.ahead(found))
	return printEach(p, found, columns, func(s transfer.Snapshot) (storedBackup, error) {
		return storedBackup{place.of(s.Name), s.Store, animalstore.At(s.At), s.Size}, nil
	})
}

// parseBackupTo sets the bucket of the backups of serve.
func parseBackupTo(address, database string) (transfer.Remote, error) {
	if address == "" {
		return nil, nil
	}
	if postgres.Is(database) {
		return nil, errors.New("--backup-to is for SQLite: back up PostgreSQL with its own tools, see \"animalstore db backup --help\"")
	}
	bucket, err := openBackupsBucket(address)
	if err != nil {
		return nil, fmt.Errorf("--backup-to: %w", err)
	}
	return bucket, nil
}
