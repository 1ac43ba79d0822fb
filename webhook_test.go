package animalstore

import (
	"fmt"
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
	for _, url := range []string{
		"", "https://example.com/" + strings.Repeat("a", MaxWebhookURLLength),
		// not http or https
		"example.com/hook", "//example.com/hook", "ftp://example.com/", "file:///etc/passwd", "gopher://example.com/",
		"https:example.com", "javascript:alert(1)",
		// no host
		"https://", "https:///hook", "https://:443/",
		// a user or a fragment
		"https://user@example.com/", "https://user:secret@example.com/", "https://@example.com/", "https://example.com@10.0.0.1/",
		"https://example.com/#part", "https://example.com/#", "https://10.0.0.1#@example.com/",
		// an invalid port
		"https://example.com:0/", "https://example.com:65536/", "https://example.com:/", "https://example.com:080/", "https://example.com:http/",
		// not a URL in ASCII
		"https://exa mple.com/", " https://example.com/", "https://example.com/\n", "https://example.com\\@10.0.0.1/",
		"https://bücher.example/", "https://１２７.0.0.1/", "https://127。0。0。1/", "https://ⓔxample.com/", "https://%31%32%37.0.0.1/",
		// not a host name
		"https://ex!ample.com/", "https://*.example.com/", "https://a..example/", "https://.example/",
		"https://" + strings.Repeat("a", 64) + ".example/", "https://" + strings.Repeat("a.", 127) + "b/",
		// numeric, but not four decimal numbers
		"https://2130706433/", "https://0x7f000001/", "https://017700000001/", "https://0177.0.0.1/", "https://0x7f.0.0.1/",
		"https://127.0.0.0x1/", "https://127.1/", "https://127.0.1/", "https://0/", "https://127.0.0.1./", "https://127.0.0.01/",
		"https://256.0.0.1/", "https://example.1/", "https://example.0X/", "https://8.8.8.8.8/",
		// not an IPv6 address without a zone
		"https://[fe80::1%25eth0]/", "https://[127.0.0.1]/", "https://[::g]/", "https://[::1/",
	} {
		t.Run(fmt.Sprintf("%.40s", url), func(t *testing.T) {
			wantCode(t, ValidateWebhookURL(url), ValidationFailed)
		})
	}
}

func TestNewWebhook(t *testing.T) {
	w := NewWebhook{URL: "https://example.com/hook"}
	if err := w.Validate(); err != nil || w.Types != "pet.*,order.*,category.*" {
		t.Errorf("got %v and types %s, want the default", err, w.Types)
	}
	for _, webhook := range []NewWebhook{
		{},
		{URL: w.URL, Types: "pet.sold"},
		{URL: w.URL, Types: "*"},
		{URL: w.URL, Types: "webhook.ping"},
		{URL: w.URL, Description: strings.Repeat("é", 501)},
		{URL: w.URL, Description: "a\x00b"},
		{URL: w.URL, Description: "\xff"},
	} {
		wantCode(t, webhook.Validate(), ValidationFailed)
	}
	if _, err := NewEventPatterns(nil); code(err) != ValidationFailed {
		t.Errorf("no types: got %v, want them refused", err)
	}
	if p, err := NewEventPatterns([]string{"key.banned", "pet.*", "key.banned"}); err != nil || p != "key.banned,pet.*" {
		t.Errorf("got %q, %v, want no duplicates", p, err)
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
		code    Code
	}{
		{"nothing", active, WebhookPatch{}, active, ""},
		{"the URL", active, WebhookPatch{URL: new("https://example.org")}, with(active, func(w *Webhook) { w.URL = "https://example.org" }), ""},
		{"types and description", active, WebhookPatch{Types: new(EventPatterns("key.*")), Description: new("")}, with(active, func(w *Webhook) { w.Types, w.Description = "key.*", "" }), ""},
		{"pause", active, WebhookPatch{State: new(WebhookPaused)}, paused, ""},
		{"resume", paused, WebhookPatch{State: new(WebhookActive)}, active, ""},
		{"enable", disabled, WebhookPatch{State: new(WebhookActive)}, active, ""},
		{"the description of a disabled one", disabled, WebhookPatch{Description: new("shop")}, disabled, ""},
		{"an invalid URL", active, WebhookPatch{URL: new("ftp://example.com"), Description: new("x")}, active, ValidationFailed},
		{"no types", active, WebhookPatch{Types: new(EventPatterns(""))}, active, ValidationFailed},
		{"an unknown type", active, WebhookPatch{Types: new(EventPatterns("pet.*,cat.*"))}, active, ValidationFailed},
		{"a long description", active, WebhookPatch{Description: new(strings.Repeat("x", 501))}, active, ValidationFailed},
		{"disable", active, WebhookPatch{State: new(WebhookDisabled)}, active, ValidationFailed},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := test.webhook
			wantCode(t, test.patch.Apply(&got), test.code)
			if got != test.want {
				t.Errorf("got %+v, want %+v", got, test.want)
			}
		})
	}
}
