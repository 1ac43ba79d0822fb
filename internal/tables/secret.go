package tables

import (
	"fmt"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/terminal"
)

// PrintSecret prints the secret of a key to standard output, with nothing else or, as
// JSON, with its key.
func PrintSecret(p *terminal.Printer, key animalstore.Key, secret string) error {
	return printSecret(p, "key", key.ID, secret, client.KeyWithSecret{Key: key, Secret: secret})
}

// PrintWebhookSecret prints the secret of a webhook like that of a key.
func PrintWebhookSecret(p *terminal.Printer, w client.WebhookWithSecret) error {
	return printSecret(p, "webhook", w.ID, w.Secret, w)
}

func printSecret(p *terminal.Printer, owner string, id int64, secret string, withOwner any) error {
	var err error
	if p.JSON {
		err = p.PrintJSON(withOwner)
	} else {
		_, err = fmt.Fprintln(p.Out, secret)
	}
	if err != nil {
		return fmt.Errorf("the secret of %s %d couldn't be printed and is lost: %w. Create a new one with \"animalstore %ss rotate %d\"", owner, id, err, owner, id)
	}
	return nil
}
