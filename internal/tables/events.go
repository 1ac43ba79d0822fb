package tables

import (
	"encoding/json"
	"fmt"
	"iter"
	"strings"

	"animalstore"
	"animalstore/internal/terminal"
)

// PrintEvents prints each event as soon as it arrives.
func PrintEvents(p *terminal.Printer, events iter.Seq2[animalstore.Event, error]) error {
	for e, err := range events {
		if err != nil {
			return err
		}
		line, err := eventLine(p, e)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(p.Out, line); err != nil {
			return err
		}
	}
	return nil
}

func eventLine(p *terminal.Printer, e animalstore.Event) (string, error) {
	if p.JSON {
		line, err := json.Marshal(e)
		return string(line), err
	}
	by := ""
	if e.KeyID != nil {
		by = "key " + decimal(*e.KeyID)
	}
	if !p.Screen.Terminal {
		return strings.Join([]string{decimal(e.ID), e.Time.String(), string(e.Type), e.Subject, summarize(e), by}, "\t"), nil
	}
	if by != "" {
		by = "  (" + by + ")"
	}
	return fmt.Sprintf("%s  %-16s  %-12s  %s%s", terminal.DateTime(e.Time.Time), e.Type, e.Subject, summarize(e), by), nil
}

// maxSummary is how much of a name is shown, in characters.
const maxSummary = 40

// summarize says in a few words what a resource is like.
func summarize(e animalstore.Event) string {
	var data struct {
		Name, Status, State, URL string
		PetID                    int64
	}
	if err := json.Unmarshal(e.Data, &data); err != nil {
		return ""
	}
	name := data.Name
	if name == "" {
		name = data.URL
	}
	if runes := []rune(name); len(runes) > maxSummary {
		name = string(runes[:maxSummary]) + "…"
	}
	var parts []string
	if data.PetID != 0 {
		parts = append(parts, "pet "+decimal(data.PetID))
	}
	for _, part := range []string{terminal.Visible(name), data.Status, data.State} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return strings.Join(parts, ", ")
}
