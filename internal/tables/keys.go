package tables

import (
	"fmt"
	"slices"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/ratelimit"
	"animalstore/internal/terminal"
)

// Keys are the columns of keys, whose state depends on the time.
func Keys(now time.Time) []terminal.Column[animalstore.Key] {
	return []terminal.Column[animalstore.Key]{
		{Title: "ID", Text: func(k animalstore.Key) string { return decimal(k.ID) }},
		{Title: "NAME", Text: func(k animalstore.Key) string { return k.Name }, Shrink: true},
		{Title: "PLAN", Text: func(k animalstore.Key) string { return string(k.Plan) }, Drop: 2},
		{Title: "PER MINUTE", Text: func(k animalstore.Key) string { return decimal(k.Limits.PerMinute) }, Drop: 7},
		{Title: "PER DAY", Text: func(k animalstore.Key) string { return decimal(k.Limits.PerDay) }, Drop: 8},
		{Title: "PERMISSIONS", Text: func(k animalstore.Key) string { return k.Permissions.String() }, Drop: 3},
		{Title: "ENVIRONMENT", Text: func(k animalstore.Key) string { return string(k.Environment) }, Drop: 9},
		{Title: "LAST USED", Time: func(k animalstore.Key) time.Time { return k.LastUsedAt.Time }, Relative: true, Drop: 4},
		{Title: "EXPIRES", Time: func(k animalstore.Key) time.Time { return k.ExpiresAt.Time }, Relative: true, Drop: 5},
		{Title: "STATE",
			Text:   func(k animalstore.Key) string { return k.State(now) },
			Colour: func(k animalstore.Key) terminal.Colour { return keyColour(&k, now) }},
		{Title: "BANNED UNTIL", Time: func(k animalstore.Key) time.Time { return k.Ban.Until.Time }, Relative: true, Never: "-", Drop: 6},
	}
}

// PrintKey prints the details of a key. limits is nil if they are unknown.
func PrintKey(p *terminal.Printer, k animalstore.Key, limits *ratelimit.Status, now time.Time) error {
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
	perMinute := terminal.Field{Name: "Requests a minute", Value: decimal(k.Limits.PerMinute)}
	perDay := terminal.Field{Name: "Requests a day", Value: decimal(k.Limits.PerDay)}
	if limits != nil {
		perMinute = terminal.Field{Name: "Left this minute", Value: fmt.Sprintf("%d of %d", limits.Minute.Remaining, limits.Minute.Limit)}
		perDay = terminal.Field{Name: "Left today", Value: fmt.Sprintf("%d of %d", limits.Day.Remaining, limits.Day.Limit)}
	}
	return []terminal.Field{
		{Name: "ID", Value: decimal(k.ID)},
		{Name: "Name", Value: k.Name},
		{Name: "State", Value: k.State(now), Colour: keyColour(k, now)},
		{Name: "Plan", Value: string(k.Plan)},
		perMinute,
		perDay,
		{Name: "Permissions", Value: k.Permissions.String()},
		{Name: "Environment", Value: string(k.Environment)},
		{Name: "Created", Value: terminal.DateTime(k.CreatedAt.Time)},
		{Name: "Last used", Value: terminal.DateTime(k.LastUsedAt.Time)},
		{Name: "Expires", Value: terminal.DateTime(k.ExpiresAt.Time)},
		{Name: "Revoked", Value: terminal.DateTime(k.RevokedAt.Time)},
		banField(k.Ban.Until),
	}
}

func keyColour(k *animalstore.Key, now time.Time) terminal.Colour {
	switch k.State(now) {
	case "live":
		return terminal.Green
	case "banned":
		return terminal.Yellow
	}
	return terminal.Red
}

// KeySentence is a key as a sentence.
func KeySentence(k animalstore.Key) string {
	return fmt.Sprintf("key %d (%s): plan %s, %d requests a minute, %d a day; %s; %s.",
		k.ID, terminal.Visible(k.Name), k.Plan, k.Limits.PerMinute, k.Limits.PerDay, k.Permissions, k.Environment)
}

// KeyTitle is a key at the beginning of a sentence.
func KeyTitle(k animalstore.Key) string {
	if k.Name == "" {
		return fmt.Sprintf("Key %d", k.ID)
	}
	return fmt.Sprintf("Key %d (%s)", k.ID, terminal.Visible(k.Name))
}

// PrintLimits prints the details of what is left of a key's limits.
func PrintLimits(p *terminal.Printer, l client.Limits) error {
	if p.JSON {
		return p.PrintJSON(l)
	}
	return p.PrintFields(limitFields(l))
}

func limitFields(l client.Limits) []terminal.Field {
	return []terminal.Field{
		{Name: "Plan", Value: string(l.Plan)},
		windowField("Left this minute", l.Minute),
		windowField("Left today", l.Day),
		{Name: "Strikes", Value: fmt.Sprintf("%d of %d before a ban", l.Strikes.Count, l.Strikes.Threshold)},
		banField(l.Ban.Until),
	}
}

func windowField(name string, w client.LimitWindow) terminal.Field {
	f := terminal.Field{Name: name, Value: fmt.Sprintf("%d of %d, until %s UTC", w.Remaining, w.Limit, terminal.DateTime(w.Reset.Time))}
	if w.Remaining == 0 {
		f.Colour = terminal.Red
	}
	return f
}

// banField shows the end of a ban; the zero time is no ban.
func banField(until animalstore.Time) terminal.Field {
	if until.IsZero() {
		return terminal.Field{Name: "Banned", Value: "no"}
	}
	return terminal.Field{Name: "Banned", Value: "until " + terminal.DateTime(until.Time) + " UTC", Colour: terminal.Red}
}

// PrintUsage prints a row for each hour with requests, the oldest first. A
// terminal also gets the total and, if it is wide enough, bars to compare the hours.
func PrintUsage(p *terminal.Printer, key string, usage []animalstore.Usage, hours int) error {
	if p.JSON {
		return p.PrintJSON(usage)
	}
	var admitted, refused, most int64
	for _, u := range usage {
		admitted += u.Admitted
		refused += u.Refused
		most = max(most, u.Admitted+u.Refused)
	}
	columns := []terminal.Column[animalstore.Usage]{
		{Title: "HOUR (UTC)", Time: func(u animalstore.Usage) time.Time { return u.Hour.Time }},
		{Title: "ADMITTED", Text: func(u animalstore.Usage) string { return decimal(u.Admitted) }},
		{Title: "REFUSED", Text: func(u animalstore.Usage) string { return decimal(u.Refused) }},
	}
	if p.Screen.Terminal {
		columns = append(columns, terminal.Column[animalstore.Usage]{Title: "█ ADMITTED  ░ REFUSED", Drop: 1,
			Text: func(u animalstore.Usage) string { return terminal.Bar(u.Admitted, u.Refused, most) }})
	}
	p.Note("%s in the last %d hours: %d admitted, %d refused.", key, hours, admitted, refused)
	return terminal.PrintList(p, func(yield func(animalstore.Usage, error) bool) {
		for _, u := range slices.Backward(usage) {
			if !yield(u, nil) {
				return
			}
		}
	}, columns)
}
