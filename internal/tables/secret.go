package tables

import (
	"fmt"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/terminal"
)

// PrintSecret prints a secret to standard output, with nothing else or, as JSON, with
// its key.
func PrintSecret(p *terminal.Printer, key animalstore.Key, secret string) error {
	var err error
	if p.JSON {
		err = p.PrintJSON(client.KeyWithSecret{Key: key, Secret: secret})
	} else {
		_, err = fmt.Fprintln(p.Out, secret)
	}
	if err != nil {
		return fmt.Errorf("the secret of key %d couldn't be printed and is lost: %w. Create a new one with \"animalstore keys rotate %d\"", key.ID, err, key.ID)
	}
	return nil
}
