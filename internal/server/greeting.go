package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"animalstore/internal/db"
)

// Addresses says where everything is, for the person who started the server.
func (s *Server) Addresses() string {
	base := s.URL()
	console := "  Console   " + base + "/console\n"
	if s.cfg.NoConsole {
		console = ""
	}
	return fmt.Sprintf(`animalstore (%s) is ready.

  API       %s/v1
  Docs      %s/docs
%s  Document  %s/openapi.yaml
  Database  %s
`, s.cfg.Environment, base, base, console, base, RedactDatabaseURL(s.cfg.Database))
}

// Greeting is Addresses with a new owner key, and a command to try it.
func (s *Server) Greeting(secret string) string {
	insecure := ""
	if strings.HasPrefix(s.URL(), "https:") {
		insecure = "\n(add --cacert FILE if your certificate is self-signed)"
	}
	return fmt.Sprintf(`%s
Your owner key, shown this once (plan business; read, write, admin):

  %s

Try it:%s

  curl -H "Authorization: Bearer %s" %s/v1/pets

`, s.Addresses(), secret, insecure, secret, s.URL())
}

// OwnerKeyVariable is the environment variable with which an operator supplies the owner
// key. It has no flag: other users can read the arguments of a process.
const OwnerKeyVariable = "ANIMALSTORE_OWNER_KEY"

// FirstKey creates the owner key of an empty database and prints it, with a greeting. A
// key that the operator supplied, in given, is imported instead and not printed, even if
// create is false.
func (s *Server) FirstKey(ctx context.Context, given string, create bool, stdout io.Writer) (greeted bool, err error) {
	if given == "" && !create {
		exist, err := s.HasKeys(ctx)
		if err == nil && !exist {
			s.cfg.Log.Info("the database has no keys yet: create one with \"animalstore keys create\"")
		}
		return false, err
	}
	owner, err := s.CreateOwnerKey(ctx, given)
	switch {
	case errors.Is(err, db.ErrFull):
		return false, fmt.Errorf("the owner key cannot be stored, because the disk of the database is full: free some space and try again (%w)", err)
	case err != nil && given != "":
		return false, fmt.Errorf("%s: %w", OwnerKeyVariable, err)
	case err != nil:
		return false, err
	case given == "" && owner.Created:
		fmt.Fprint(stdout, s.Greeting(owner.Secret))
		return true, nil
	case owner.Created:
		s.cfg.Log.Info("the key in " + OwnerKeyVariable + " is the owner key")
	case given != "" && !owner.Exists:
		s.cfg.Log.Warn("the key in " + OwnerKeyVariable + " was not imported: the database has keys already")
	}
	return false, nil
}
