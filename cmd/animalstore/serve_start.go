package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strings"
	"syscall"

	"animalstore/internal/db"
	"animalstore/internal/db/transfer"
	"animalstore/internal/server"
)

// explainStartError names the flag to change if a server can't start with its setting,
// and the setting of systemd if that makes a directory read-only.
func explainStartError(err error) error {
	named := nameFlag(err)
	if !errors.Is(err, syscall.EROFS) {
		return named
	}
	return fmt.Errorf("%w. If this is a systemd service, name the directory in ReadWritePaths= (\"systemctl edit animalstore\")", named)
}

// nameFlag adds the flag to change to the error of a server that can't start.
func nameFlag(err error) error {
	var taken *server.ListenError
	var certificate *server.CertificateError
	var backups *transfer.DirectoryError
	switch {
	case errors.As(err, &certificate) && certificate.ACME:
		return fmt.Errorf("--acme-cache: %w", certificate.Err)
	case errors.As(err, &certificate):
		return fmt.Errorf("load the certificate of --tls-cert and --tls-key: %w", certificate.Err)
	case errors.As(err, &backups):
		return fmt.Errorf("--backup-dir: %w", backups.Err)
	case !errors.As(err, &taken):
		return databaseFlag{flag: "database"}.explain(err)
	case taken.Ops:
		return fmt.Errorf("cannot serve metrics: %w. Choose another address with --ops-listen, or none with --ops-listen \"\"", taken.Err)
	case taken.Redirect:
		return fmt.Errorf("cannot redirect plain HTTP: %w. Choose another address with --redirect-http", taken.Err)
	}
	return fmt.Errorf("cannot serve: %w. Choose another address with --listen", taken.Err)
}

// serverAddresses tells the person who started a server where to find everything.
func serverAddresses(s *server.Server, cfg server.Config) string {
	base := s.URL()
	console := "  Console   " + base + "/console\n"
	if cfg.NoConsole {
		console = ""
	}
	return fmt.Sprintf(`animalstore (%s) is ready.

  API       %s/v1
  Docs      %s/docs
%s  Document  %s/openapi.yaml
  Database  %s
`, cfg.Environment, base, base, console, base, server.RedactDatabaseURL(cfg.Database))
}

// greeting is the addresses, a new owner key and a command to try it.
func greeting(s *server.Server, cfg server.Config, secret string) string {
	insecure := ""
	if strings.HasPrefix(s.URL(), "https:") {
		insecure = "\n(add --cacert FILE if your certificate is self-signed)"
	}
	return fmt.Sprintf(`%s
Your owner key, shown this once (plan business; read, write, admin):

  %s

Try it:%s

  curl -H "Authorization: Bearer %s" %s/v1/pets

`, serverAddresses(s, cfg), secret, insecure, secret, s.URL())
}

// firstKey creates the owner key of an empty database and prints it, with a greeting. A
// key that the operator supplied is imported instead and not printed, even if create is
// false.
func firstKey(ctx context.Context, s *server.Server, cfg server.Config, supplied string, create bool, stdout io.Writer) (greeted bool, err error) {
	if supplied == "" && !create {
		exist, err := s.HasKeys(ctx)
		if err == nil && !exist {
			cfg.Log.Info("the database has no keys yet: create one with \"animalstore keys create\"")
		}
		return false, err
	}
	owner, err := s.CreateOwnerKey(ctx, supplied)
	switch {
	case errors.Is(err, db.ErrFull):
		return false, fmt.Errorf("the owner key cannot be stored, because the disk of the database is full: free some space and try again (%w)", err)
	case err != nil && supplied != "":
		return false, fmt.Errorf("%s: %w", ownerKeyVariable, err)
	case err != nil:
		return false, err
	case supplied == "" && owner.Created:
		fmt.Fprint(stdout, greeting(s, cfg, owner.Secret))
		return true, nil
	case owner.Created:
		cfg.Log.Info("the key in " + ownerKeyVariable + " is the owner key")
	case supplied != "" && !owner.Exists:
		cfg.Log.Warn("the key in " + ownerKeyVariable + " was not imported: the database has keys already")
	}
	return false, nil
}

// notify tells systemd something about this service, such as READY=1: it accepts
// connections, so units that wait for it can start. The socket is the value of
// NOTIFY_SOCKET, "" without systemd.
func notify(socket, message string, log *slog.Logger) {
	if socket == "" {
		return
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err == nil {
		defer conn.Close()
		_, err = conn.Write([]byte(message))
	}
	if err != nil {
		log.Warn("cannot tell the service manager about this server", "message", message, "err", err)
	}
}
