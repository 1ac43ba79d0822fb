package tables

import (
	"bytes"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"
	"time"

	"animalstore"
	"animalstore/client"
	"animalstore/internal/ratelimit"
	"animalstore/internal/terminal"
)

var (
	now = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)
	key = animalstore.Key{
		ID: 2, Name: "shop", Plan: animalstore.PlanPro, Limits: animalstore.Limits{PerMinute: 300, PerDay: 20_000},
		Permissions: animalstore.Read | animalstore.Write, Environment: animalstore.Production, CreatedAt: animalstore.At(now.Add(-time.Hour)),
	}
)

// printed is a list as a pipe gets it.
func printed[T any](t *testing.T, columns []terminal.Column[T], entries ...T) string {
	t.Helper()
	var out bytes.Buffer
	var list iter.Seq2[T, error] = func(yield func(T, error) bool) {
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
	if err := terminal.PrintList(terminal.NewPrinter(&out, &out, false), list, columns); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestColumns(t *testing.T) {
	for _, test := range []struct{ name, got, want string }{
		{"pets", printed(t, Pets, animalstore.Pet{ID: 1, Name: "Rex", CategoryID: 7, Status: "sold"}), "1\tRex\t7\tsold\n"},
		{"orders", printed(t, Orders, animalstore.Order{ID: 3, PetID: 1, Status: "placed", CreatedAt: animalstore.At(now), UpdatedAt: animalstore.At(now)}), "3\t1\tplaced\t2026-03-10T12:00:00.000Z\t2026-03-10T12:00:00.000Z\n"},
		{"categories", printed(t, Categories, animalstore.Category{ID: -7, Name: "Dogs"}), "-7\tDogs\n"},
		{"keys", printed(t, Keys(now), key), "2\tshop\tpro\t300\t20000\tread,write\tproduction\tnever\tnever\tlive\t-\n"},
	} {
		if !strings.HasSuffix(test.got, test.want) {
			t.Errorf("%s:\n got %q\nwant %q", test.name, test.got, test.want)
		}
	}
}

// TestFields: what is left is shown only if it is known, and the end of a ban always.
func TestFields(t *testing.T) {
	value := func(fields []terminal.Field, name string) string {
		i := slices.IndexFunc(fields, func(f terminal.Field) bool { return f.Name == name })
		if i < 0 {
			return "no such field"
		}
		return fields[i].Value
	}
	banned := key
	banned.Ban.Until = animalstore.At(now.Add(time.Hour))
	left := &ratelimit.Status{Minute: ratelimit.WindowStatus{Limit: 300, Remaining: 5}}
	limits := client.Limits{Day: client.LimitWindow{Limit: 10, Reset: animalstore.At(now)}}
	for _, test := range []struct {
		fields     []terminal.Field
		name, want string
	}{
		{keyFields(&key, nil, now), "Requests a minute", "300"},
		{keyFields(&key, left, now), "Left this minute", "5 of 300"},
		{keyFields(&key, left, now), "Banned", "no"},
		{keyFields(&banned, nil, now), "Banned", "until 2026-03-10 13:00:00 UTC"},
		{keyFields(&banned, nil, now), "State", "banned"},
		{limitFields(limits), "Left today", "0 of 10, until 2026-03-10 12:00:00 UTC"},
	} {
		if got := value(test.fields, test.name); got != test.want {
			t.Errorf("%s: got %q, want %q", test.name, got, test.want)
		}
	}
}

// TestPrintUsage: the oldest hour is first, and the total is a note.
func TestPrintUsage(t *testing.T) {
	var out, notes bytes.Buffer
	usage := []animalstore.Usage{{Hour: animalstore.At(now), Admitted: 3, Refused: 1}, {Hour: animalstore.At(now.Add(-time.Hour)), Admitted: 2}}
	if err := PrintUsage(terminal.NewPrinter(&out, &notes, false), KeyTitle(key), usage, 24); err != nil {
		t.Fatal(err)
	}
	if want := "2026-03-10T11:00:00.000Z\t2\t0\n2026-03-10T12:00:00.000Z\t3\t1\n"; !strings.HasSuffix(out.String(), want) {
		t.Errorf("got %q, want %q at its end", &out, want)
	}
	if want := "Key 2 (shop) in the last 24 hours: 5 admitted, 1 refused."; !strings.Contains(notes.String(), want) {
		t.Errorf("got %q, want %q", &notes, want)
	}
}

// TestPrintForwarded: one line for an event, with what the receiver did.
func TestPrintForwarded(t *testing.T) {
	status := 204
	event := animalstore.Event{ID: 7, Type: animalstore.PetCreated, Subject: "pet/1"}
	for _, test := range []struct {
		name    string
		printer terminal.Printer
		attempt animalstore.Attempt
		want    string
	}{
		{"pipe", terminal.Printer{}, animalstore.Attempt{Time: animalstore.At(now), Status: &status, DurationMs: 3}, "7\t2026-03-10T12:00:00.000Z\tpet.created\tpet/1\t204\t3\n"},
		{"no response", terminal.Printer{}, animalstore.Attempt{Time: animalstore.At(now), Error: "timeout"}, "7\t2026-03-10T12:00:00.000Z\tpet.created\tpet/1\ttimeout\t0\n"},
		{"terminal", terminal.Printer{Screen: terminal.Screen{Terminal: true}}, animalstore.Attempt{Time: animalstore.At(now), Status: &status, DurationMs: 3}, "2026-03-10 12:00:00  pet.created       pet/1         204  (3 ms)\n"},
		{"JSON", terminal.Printer{JSON: true}, animalstore.Attempt{Time: animalstore.At(now), Status: &status, DurationMs: 3}, `{"eventId":7,"type":"pet.created","subject":"pet/1","time":"2026-03-10T12:00:00.000Z","status":204,"error":null,"durationMs":3}` + "\n"},
	} {
		var out bytes.Buffer
		test.printer.Out = &out
		if err := PrintForwarded(&test.printer, event, test.attempt); err != nil || out.String() != test.want {
			t.Errorf("%s: got %q and %v\nwant %q", test.name, &out, err, test.want)
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, errors.New("no space left") }

// TestLostSecret: if a secret can't be printed, the error says how to get another.
func TestLostSecret(t *testing.T) {
	p := terminal.NewPrinter(fullDisk{}, fullDisk{}, false)
	for want, err := range map[string]error{
		`the secret of key 2 couldn't be printed and is lost: no space left. Create a new one with "animalstore keys rotate 2"`:         PrintSecret(p, key, "secret"),
		`the secret of webhook 3 couldn't be printed and is lost: no space left. Create a new one with "animalstore webhooks rotate 3"`: PrintWebhookSecret(p, client.WebhookWithSecret{Webhook: animalstore.Webhook{ID: 3}, Secret: "secret"}),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("got %v\nwant %s", err, want)
		}
	}
}
