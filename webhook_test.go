package animalstore

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
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
