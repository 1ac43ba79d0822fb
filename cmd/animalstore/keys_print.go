package main

import (
	"fmt"
	"time"

	"animalstore"
	"animalstore/internal/ratelimit"
	"animalstore/internal/terminal"
)

// keyColumns are the columns of keys, whose state depends on the time.
func keyColumns(now time.Time) []terminal.Column[animalstore.Key] {
	return []terminal.Column[animalstore.Key]{
		{Title: "ID", Text: func(k animalstore.Key) string { return decimal(k.ID) }},
		{Title: "NAME", Text: func(k animalstore.Key) string { return k.Name }},
		stateColumn("STATE", func(k animalstore.Key) string { return k.State(now) }),
		{Title: "PLAN", Text: func(k animalstore.Key) string { return string(k.Plan) }},
		{Title: "PERMISSIONS", Text: func(k animalstore.Key) string { return k.Permissions.String() }},
		{Title: "LAST USED", Time: func(k animalstore.Key) time.Time { return k.LastUsedAt.Time }, Relative: true},
		{Title: "EXPIRES", Time: func(k animalstore.Key) time.Time { return k.ExpiresAt.Time }, Relative: true},
		{Title: "BANNED UNTIL", Time: func(k animalstore.Key) time.Time { return k.Ban.Until.Time }, Relative: true, Never: "-"},
		{Title: "NETWORKS", Text: networksText},
		{Title: "PER MINUTE", Text: func(k animalstore.Key) string { return decimal(k.Limits.PerMinute) }},
		{Title: "PER DAY", Text: func(k animalstore.Key) string { return decimal(k.Limits.PerDay) }},
		{Title: "ENVIRONMENT", Text: func(k animalstore.Key) string { return string(k.Environment) }},
	}
}

// printKey prints the details of a key. limits is nil if they are unknown.
func printKey(p *terminal.Printer, k animalstore.Key, limits *ratelimit.Status, now time.Time) error {
	switch {
	case !p.JSON:
		return p.PrintFields(keyFields(&k, limits, now))
	case limits == nil:
		return p.PrintJSON(k)
	}
	return p.PrintJSON(struct {
		animalstore.Key
		LeftThisMinute int64            `json:"leftThisMinute"`
		LeftToday      int64            `json:"leftToday"`
		BannedUntil    animalstore.Time `json:"bannedUntil"`
	}{k, limits.Minute.Remaining, limits.Day.Remaining, limits.BannedUntil})
}

func keyFields(k *animalstore.Key, limits *ratelimit.Status, now time.Time) []terminal.Field {
	perMinute := terminal.Field{Name: "Requests per minute", Value: decimal(k.Limits.PerMinute)}
	perDay := terminal.Field{Name: "Requests per day", Value: decimal(k.Limits.PerDay)}
	if limits != nil {
		perMinute = terminal.Field{Name: "Left this minute", Value: fmt.Sprintf("%d of %d", limits.Minute.Remaining, limits.Minute.Limit)}
		perDay = terminal.Field{Name: "Left today", Value: fmt.Sprintf("%d of %d", limits.Day.Remaining, limits.Day.Limit)}
	}
	return []terminal.Field{
		{Name: "ID", Value: decimal(k.ID)},
		{Name: "Name", Value: k.Name},
		{Name: "State", Value: k.State(now), Colour: stateColour(k.State(now))},
		{Name: "Plan", Value: string(k.Plan)},
		perMinute,
		perDay,
		{Name: "Permissions", Value: k.Permissions.String()},
		{Name: "Networks", Value: networksText(*k)},
		{Name: "Environment", Value: string(k.Environment)},
		{Name: "Created", Value: terminal.DateTime(k.CreatedAt.Time)},
		{Name: "Last used", Value: terminal.DateTime(k.LastUsedAt.Time)},
		{Name: "Expires", Value: terminal.DateTime(k.ExpiresAt.Time)},
		{Name: "Revoked", Value: terminal.DateTime(k.RevokedAt.Time)},
		{Name: "Suspended", Value: terminal.DateTime(k.SuspendedAt.Time)},
		banField(k.Ban.Until),
	}
}

func networksText(k animalstore.Key) string {
	if k.Networks == "" {
		return anywhere
	}
	return string(k.Networks)
}

// keySentence describes a key, with a full stop.
func keySentence(k animalstore.Key) string {
	return fmt.Sprintf("key %d (%s): plan %s, %d requests per minute, %d per day; %s; from %s; %s.",
		k.ID, terminal.Visible(k.Name), k.Plan, k.Limits.PerMinute, k.Limits.PerDay, k.Permissions, networksText(k), k.Environment)
}

// keyTitle is a key at the beginning of a sentence.
func keyTitle(k animalstore.Key) string {
	if k.Name == "" {
		return fmt.Sprintf("Key %d", k.ID)
	}
	return fmt.Sprintf("Key %d (%s)", k.ID, terminal.Visible(k.Name))
}

// banField shows the end of a ban; the zero time is no ban.
func banField(until animalstore.Time) terminal.Field {
	if until.IsZero() {
		return terminal.Field{Name: "Banned", Value: "no"}
	}
	return terminal.Field{Name: "Banned", Value: "until " + terminal.DateTime(until.Time) + " UTC", Colour: terminal.Red}
}

// printSecret prints nothing but the secret of a key or webhook or, as JSON, both.
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
