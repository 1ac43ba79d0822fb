package animalstore

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestValidateWebhookURL(t *testing.T) {
	for _, valid := range []string{
		"https://example.com", "https://example.com/hook?a=b", "https://EXAMPLE.com:8443/", "https://xn--bcher-kva.example/%C3%A9",
		"https://8.8.8.8/hook", "https://[2606:4700::1111]:8443/", "http://localhost:3000/hook", "https://example.com./",
		"https://a_b.example/", "https://0x7f.example/", "https://1.2.3.4.example", "https://[::ffff:8.8.8.8]/", "HTTPS://example.com",
		"https://" + strings.Repeat("a.", 126) + "b/",
	} {
		if err := ValidateWebhookURL(valid); err != nil {
			t.Errorf("%s: got %v, want it accepted", valid, err)
		}
	}
	for _, test := range []struct{ url, message string }{
		{"", "url is required"},
		{"https://example.com/" + strings.Repeat("a", MaxWebhookURLLength), "at most 2048"},
		{"example.com/hook", "must begin with https://"},
		{"//example.com/hook", "must begin with https://"},
		{"ftp://example.com/", "must begin with https://"},
		{"file:///etc/passwd", "must begin with https://"},
		{"gopher://example.com/", "must begin with https://"},
		{"https:example.com", "must begin with https://"},
		{"javascript:alert(1)", "must begin with https://"},
		{"https://", "must name a host"},
		{"https:///hook", "must name a host"},
		{"https://:443/", "must name a host"},
		{"https://user@example.com/", "user name"},
		{"https://user:secret@example.com/", "user name"},
		{"https://@example.com/", "user name"},
		{"https://example.com@10.0.0.1/", "user name"},
		{"https://example.com/#part", "fragment"},
		{"https://example.com/#", "fragment"},
		{"https://10.0.0.1#@example.com/", "fragment"},
		{"https://example.com:0/", "port"},
		{"https://example.com:65536/", "port"},
		{"https://example.com:/", "port"},
		{"https://example.com:080/", "port"},
		{"https://example.com:http/", "URL in ASCII"},
		{"https://exa mple.com/", "URL in ASCII"},
		{" https://example.com/", "URL in ASCII"},
		{"https://example.com/\n", "URL in ASCII"},
		{"https://example.com\\@10.0.0.1/", "URL in ASCII"},
		{"https://bücher.example/", "URL in ASCII"},
		{"https://１２７.0.0.1/", "URL in ASCII"},
		{"https://127。0。0。1/", "URL in ASCII"},
		{"https://ⓔxample.com/", "URL in ASCII"},
		{"https://%31%32%37.0.0.1/", "URL in ASCII"},
		{"https://ex!ample.com/", "letters, digits"},
		{"https://*.example.com/", "letters, digits"},
		{"https://a..example/", "1 to 63 characters"},
		{"https://.example/", "1 to 63 characters"},
		{"https://" + strings.Repeat("a", 64) + ".example/", "1 to 63 characters"},
		{"https://" + strings.Repeat("a.", 127) + "b/", "253"},
		{"https://2130706433/", "four decimal numbers"},
		{"https://0x7f000001/", "four decimal numbers"},
		{"https://017700000001/", "four decimal numbers"},
		{"https://0177.0.0.1/", "four decimal numbers"},
		{"https://0x7f.0.0.1/", "four decimal numbers"},
		{"https://127.0.0.0x1/", "four decimal numbers"},
		{"https://127.1/", "four decimal numbers"},
		{"https://127.0.1/", "four decimal numbers"},
		{"https://0/", "four decimal numbers"},
		{"https://127.0.0.1./", "four decimal numbers"},
		{"https://127.0.0.01/", "four decimal numbers"},
		{"https://256.0.0.1/", "four decimal numbers"},
		{"https://example.1/", "four decimal numbers"},
		{"https://example.0X/", "four decimal numbers"},
		{"https://8.8.8.8.8/", "four decimal numbers"},
		{"https://[fe80::1%25eth0]/", "without a zone"},
		{"https://[127.0.0.1]/", "URL in ASCII"},
		{"https://[::g]/", "URL in ASCII"},
		{"https://[::1/", "URL in ASCII"},
	} {
		t.Run(fmt.Sprintf("%.40s", test.url), func(t *testing.T) {
			wantMessage(t, ValidateWebhookURL(test.url), ValidationFailed, test.message)
		})
	}
}

func TestNewWebhook(t *testing.T) {
	w := NewWebhook{URL: "https://example.com/hook"}
	if err := w.Validate(); err != nil || w.Types != "pet.*,order.*,category.*" {
		t.Errorf("got %v and types %s, want the default", err, w.Types)
	}
	for _, test := range []struct {
		webhook NewWebhook
		message string
	}{
		{NewWebhook{}, "url is required"},
		{NewWebhook{URL: w.URL, Types: "pet.sold"}, `not "pet.sold"`},
		{NewWebhook{URL: w.URL, Types: "*"}, `not "*"`},
		{NewWebhook{URL: w.URL, Types: "webhook.ping"}, `not "webhook.ping"`},
		{NewWebhook{URL: w.URL, Description: strings.Repeat("é", 501)}, "at most 500"},
		{NewWebhook{URL: w.URL, Description: "a\x00b"}, "control characters"},
		{NewWebhook{URL: w.URL, Description: "\xff"}, "plain text"},
	} {
		wantMessage(t, test.webhook.Validate(), ValidationFailed, test.message)
	}
	if _, err := NewEventPatterns(nil); code(err) != ValidationFailed {
		t.Errorf("no types: got %v, want them refused", err)
	}
	if p, err := NewEventPatterns([]string{"key.banned", "pet.*", "key.banned"}); err != nil || p != "key.banned,pet.*" {
		t.Errorf("got %q, %v, want no duplicates", p, err)
	}
}

func TestEventPatterns(t *testing.T) {
	for _, test := range []struct {
		patterns EventPatterns
		want     []EventType
	}{
		{"order.*,pet.created", []EventType{PetCreated, OrderCreated, OrderUpdated}},
		{"pet.created,pet.*", []EventType{PetCreated, PetUpdated, PetDeleted}},
		{"webhook.*", []EventType{WebhookCreated, WebhookUpdated, WebhookDeleted, WebhookDisabledEvent}},
	} {
		if got := test.patterns.Types(); !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", test.patterns, got, test.want)
		}
		encoded, err := json.Marshal(test.patterns)
		if err != nil {
			t.Fatal(err)
		}
		var again EventPatterns
		if err := json.Unmarshal(encoded, &again); err != nil || again != test.patterns {
			t.Errorf("%s: got %v, %s from %s", test.patterns, err, again, encoded)
		}
	}
}

func TestWebhookPatch(t *testing.T) {
	active := Webhook{ID: 4, URL: "https://example.com/hook", Types: "pet.*", Description: "shop", State: WebhookActive}
	disabled := active
	disabled.Disable("gone")
	if disabled.State != WebhookDisabled || disabled.DisabledReason != "gone" {
		t.Fatalf("Disable: got %+v", disabled)
	}
	paused := active
	paused.State = WebhookPaused
	again := paused
	again.Disable("gone")
	if again != paused {
		t.Errorf("Disable changed a paused webhook to %+v", again)
	}
	with := func(w Webhook, change func(*Webhook)) Webhook { change(&w); return w }
	for _, test := range []struct {
		name    string
		webhook Webhook
		patch   WebhookPatch
		want    Webhook
		message string
	}{
		{"nothing", active, WebhookPatch{}, active, ""},
		{"the URL", active, WebhookPatch{URL: new("https://example.org")}, with(active, func(w *Webhook) { w.URL = "https://example.org" }), ""},
		{"types and description", active, WebhookPatch{Types: new(EventPatterns("key.*")), Description: new("")}, with(active, func(w *Webhook) { w.Types, w.Description = "key.*", "" }), ""},
		{"pause", active, WebhookPatch{State: new(WebhookPaused)}, paused, ""},
		{"resume", paused, WebhookPatch{State: new(WebhookActive)}, active, ""},
		{"enable", disabled, WebhookPatch{State: new(WebhookActive)}, active, ""},
		{"the description of a disabled one", disabled, WebhookPatch{Description: new("shop")}, disabled, ""},
		{"an invalid URL", active, WebhookPatch{URL: new("ftp://example.com"), Description: new("x")}, active, "must begin with https"},
		{"no types", active, WebhookPatch{Types: new(EventPatterns(""))}, active, "at least one type"},
		{"an unknown type", active, WebhookPatch{Types: new(EventPatterns("pet.*,cat.*"))}, active, `not "cat.*"`},
		{"a long description", active, WebhookPatch{Description: new(strings.Repeat("x", 501))}, active, "at most 500"},
		{"disable", active, WebhookPatch{State: new(WebhookDisabled)}, active, "state must be active or paused"},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := test.webhook
			err := test.patch.Apply(&got)
			want := ValidationFailed
			if test.message == "" {
				want = ""
			}
			wantMessage(t, err, want, test.message)
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}

// TestNextAttempt is the whole schedule, on a clock that moves from attempt to attempt.
func TestNextAttempt(t *testing.T) {
	start := At(time.Date(2026, 11, 16, 0, 0, 0, 0, time.UTC))
	for _, random := range []float64{0, 0.5, 1} {
		now, factor := start, 0.9+0.2*random
		for attempts, seconds := range []float64{0, 5, 300, 1800, 7200, 18000, 36000, 50400, 72000, 86400} {
			if attempts == 0 {
				continue // at once
			}
			next, more := NextAttempt(attempts, now, random, 0)
			if want := At(now.Add(time.Duration(seconds * factor * float64(time.Second)))); !more || next != want {
				t.Errorf("after attempt %d at %s: got %s, %t, want %s", attempts, now, next, more, want)
			}
			now = next
		}
		if _, more := NextAttempt(10, now, random, 0); more {
			t.Error("there is an attempt after the tenth")
		}
	}
	for _, test := range []struct {
		attempts          int
		retryAfter, delay time.Duration
	}{
		{1, time.Second, 5 * time.Second}, {1, time.Minute, time.Minute}, {2, time.Minute, 5 * time.Minute},
		{1, 24 * time.Hour, 24 * time.Hour}, {1, 48 * time.Hour, 24 * time.Hour}, {1, -time.Hour, 5 * time.Second},
	} {
		if next, _ := NextAttempt(test.attempts, start, 0.5, test.retryAfter); next != At(start.Add(test.delay)) {
			t.Errorf("attempt %d with Retry-After %s: got %s, want %s", test.attempts, test.retryAfter, next.Sub(start.Time), test.delay)
		}
	}
	if _, more := NextAttempt(10, start, 0.5, time.Hour); more {
		t.Error("Retry-After adds an attempt after the last")
	}
}

func TestDeliveryResult(t *testing.T) {
	at := AtMilli(1_000_000)
	for _, test := range []struct {
		name   string
		tries  int
		event  int64
		status int
		want   DeliveryState
		next   Time
		gone   bool
	}{
		{"200", 0, 7, 200, DeliveryDelivered, Time{}, false},
		{"299 at last", 9, 7, 299, DeliveryDelivered, Time{}, false},
		{"no response", 0, 7, 0, DeliveryPending, AtMilli(1_005_250), false},
		{"300", 1, 7, 300, DeliveryPending, AtMilli(1_300_250), false},
		{"500 at last", 9, 7, 500, DeliveryFailed, Time{}, false},
		{"retried by hand after the last", 12, 7, 500, DeliveryFailed, Time{}, false},
		{"410", 0, 7, 410, DeliveryFailed, Time{}, true},
		{"ping", 0, 0, 204, DeliveryDelivered, Time{}, false},
		{"ping failed", 0, 0, 500, DeliveryFailed, Time{}, false},
	} {
		d := &ClaimedDelivery{EventID: test.event, Tries: test.tries}
		a := Attempt{Time: at, DurationMs: 250}
		if test.status != 0 {
			a.Status = &test.status
		}
		r := d.Result(a, 0.5, 0)
		if r.State != test.want || r.Next != test.next || r.Gone != test.gone {
			t.Errorf("%s: got %s, next %d, gone %t, want %s, %d, %t", test.name, r.State, r.Next.Milli(), r.Gone, test.want, test.next.Milli(), test.gone)
		}
	}
}

func TestDueDelivery(t *testing.T) {
	d := ClaimedDelivery{ID: 3, WebhookID: 2, EventID: 17, Type: PetCreated, Time: AtMilli(1614265330123), Data: json.RawMessage(`{"id":1}`), Secrets: []string{"whsec_canary"}}
	if want := `{"type":"pet.created","timestamp":"2021-02-25T15:02:10.123Z","data":{"id":1}}`; string(d.Body()) != want {
		t.Errorf("got %s, want %s", d.Body(), want)
	}
	if d.MessageID() != "evt_17" {
		t.Errorf("got the id %s", d.MessageID())
	}
	if text := fmt.Sprintf("%v %+v %#v %s", d, d, d, d); strings.Contains(text, "canary") {
		t.Errorf("printing it shows the secret: %s", text)
	}
	d.EventID = 0
	if d.MessageID() != "ping_3" {
		t.Errorf("got the id %s of a ping", d.MessageID())
	}
	var attempts []Attempt
	for n := range 25 {
		attempts = Attempt{DurationMs: int64(n)}.AppendTo(attempts)
	}
	if len(attempts) != MaxAttemptsShown || attempts[0].DurationMs != 5 {
		t.Errorf("got %d attempts from %d on, want the last 20", len(attempts), attempts[0].DurationMs)
	}
}
