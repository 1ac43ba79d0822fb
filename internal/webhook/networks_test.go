package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"animalstore"
	"animalstore/internal/db"
)

// inside are addresses that webhooks may not reach.
var inside = strings.Fields(`
	127.0.0.1 127.0.0.2 127.255.255.254 0.0.0.0 0.1.2.3
	10.0.0.1 10.255.255.255 172.16.0.1 172.31.255.255 192.168.0.1 192.168.255.255
	169.254.0.1 169.254.169.254 169.254.170.2 100.64.0.1 100.100.100.200 100.127.255.255
	192.0.0.1 192.0.0.8 192.0.0.170 192.0.0.192 192.0.2.1 198.51.100.1 203.0.113.7 198.18.0.1 198.19.255.255
	192.88.99.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 168.63.129.16
	::1 :: ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:169.254.169.254 ::ffff:8.8.8.8 ::127.0.0.1 ::8.8.8.8
	64:ff9b::7f00:1 64:ff9b::808:808 64:ff9b:1::7f00:1 100::1 100:0:0:1::1
	2001::1 2001:0:4136:e378:8000:63bf:3fff:fdd2 2001:2::1 2001:10::1 2001:db8::1 2001:1::4
	2002:7f00:1:: 2002:808:808::1 3fff::1 5f00::1 4000::1 8000::1
	fc00::1 fd00:ec2::254 fe80::1 fec0::1 ff02::1 ff0e::1 ::ffff:0:127.0.0.1 0:0:0:0:0:0:0:1
	0.255.255.255 192.0.0.11 192.0.2.255 192.88.99.255 198.51.100.255 203.0.113.255
	2001:1:: 2001:4:111::1 2001:4:113::1 2001:2:1::1 2001:1f::1 2001:40::1 2001:1ff:ffff::1 2001:db8:ffff::1 2002:ffff::1 3fff:fff:ffff::1`)

var outside = strings.Fields(`
	1.1.1.1 8.8.8.8 9.255.255.255 11.0.0.1 100.63.255.255 100.128.0.1 126.255.255.255 128.0.0.1
	169.253.255.255 169.255.0.1 172.15.255.255 172.32.0.1 192.0.0.9 192.0.0.10 192.0.1.1 192.31.196.1 192.52.193.1
	192.167.255.255 192.169.0.1 192.175.48.1 198.17.255.255 198.20.0.1 223.255.255.255 168.63.129.17
	2606:4700:4700::1111 2001:4860:4860::8888 2001:200::1 2001:1::1 2001:3::1 2001:4:112::1 2001:20::1 2003::1
	2620:4f:8000::1 2a00:1450::1 3ffe::1
	1.0.0.1 192.0.3.1 192.88.98.1 192.88.100.1 198.51.99.1 198.51.101.1 203.0.112.1 203.0.114.1
	2001:1::2 2001:1::3 2001:3:ffff::1 2001:4:112:ffff::1 2001:2f:ffff::1 2001:30::1 2001:3f:ffff::1
	2001:db7::1 2001:db9::1 2003:: 3fff:1000::1`)

func TestIsGlobal(t *testing.T) {
	for _, text := range inside {
		if isGlobal(netip.MustParseAddr(text)) {
			t.Errorf("%s: got global, want it refused", text)
		}
	}
	for _, text := range outside {
		if !isGlobal(netip.MustParseAddr(text)) {
			t.Errorf("%s: got refused, want it global", text)
		}
	}
	if isGlobal(netip.Addr{}) || isGlobal(netip.MustParseAddr("2606:4700::1%eth0")) {
		t.Error("no address, or one with a zone, is global")
	}
}

// spellings are hosts that some program somewhere reads as an address inside.
var spellings = strings.Fields(`
	2130706433 0x7f000001 017700000001 0177.0.0.1 0x7f.0.0.1 0x7f.1 127.1 127.0.1 127.0.0.1. 127.0.0.01 0 00 0x0
	127.0.0.0x1 3232235777 2852039166 0xa9fea9fe 169.254.43518 0251.0376.0251.0376 10.1 localhost localhost. LOCALHOST
	[::1] [::ffff:127.0.0.1] [::ffff:7f00:1] [0:0:0:0:0:ffff:7f00:1] [64:ff9b::127.0.0.1] [::127.0.0.1] [fe80::1%25lo] [::1%25lo]
	１２７.0.0.1 127。0。0。1 ①②⑦.0.0.1 %31%32%37.0.0.1 127.0.0.1%00.example.com 127.0.0.1%2f.example.com`)

// listen counts the connections to a port on all addresses of this machine.
func listen(t *testing.T) (port string, connections *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", ":0")
	if err != nil {
		t.Fatal(err)
	}
	connections = new(atomic.Int64)
	server := &httptest.Server{Listener: l, Config: &http.Server{
		Handler: http.NotFoundHandler(),
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				connections.Add(1)
			}
		},
	}}
	server.Start()
	t.Cleanup(server.Close)
	_, port, _ = net.SplitHostPort(l.Addr().String())
	return port, connections
}

func due(to string) *db.ClaimedDelivery {
	return &db.ClaimedDelivery{ID: 1, WebhookID: 1, EventID: 1, Type: animalstore.PetCreated, Time: animalstore.AtMilli(1), Data: json.RawMessage("{}"),
		URL: to, Secrets: []string{"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}}
}

// TestNothingLeadsInside: no spelling of an address inside is saved, and none is
// connected to if it was saved all the same.
func TestNothingLeadsInside(t *testing.T) {
	t.Parallel()
	port, connections := listen(t)
	networks := NewNetworks(nil)
	sender := NewSender(SenderConfig{Networks: networks, Timeout: 5 * time.Second})
	defer sender.Close()
	urls := []string{
		"https://user@127.0.0.1:PORT/", "https://example.com@127.0.0.1:PORT/", "https://127.0.0.1:PORT#@example.com/",
		"https://127.0.0.1:PORT\\@example.com/", "https://example.com\\@127.0.0.1:PORT/", "http:127.0.0.1:PORT", "//127.0.0.1:PORT/",
		"https://127.0.0.1:PORT\t/", "https:///127.0.0.1:PORT/", "gopher://127.0.0.1:PORT/_x", "file://127.0.0.1/etc/passwd",
		"unix:/run/docker.sock", "http+unix://%2Frun%2Fdocker.sock/",
	}
	for _, host := range append(slices.Clone(inside), spellings...) {
		if strings.Contains(host, ":") && !strings.HasPrefix(host, "[") {
			host = "[" + host + "]"
		}
		urls = append(urls, "https://"+host+":PORT/hook", "http://"+host+":PORT/hook")
	}
	for _, u := range urls {
		u = strings.ReplaceAll(u, "PORT", port)
		var refused *animalstore.Error
		if err := networks.Check(t.Context(), u); !errors.As(err, &refused) || refused.Code != animalstore.ValidationFailed {
			t.Errorf("%s was saved: got %v, want validation_failed", u, err)
		}
		r := sender.Attempt(t.Context(), due(u))
		if r.Status != nil || r.Error == "" {
			t.Errorf("%s was sent to: got %v, want an error", u, *r.Status)
		}
	}
	if n := connections.Load(); n != 0 {
		t.Errorf("got %d connections inside, want 0", n)
	}
}

// resolver answers with these addresses, separated by spaces.
func resolver(answer string) func(context.Context, string) ([]netip.Addr, error) {
	return func(context.Context, string) (addrs []netip.Addr, err error) {
		if answer == "" {
			return nil, errors.New("no such host")
		}
		for text := range strings.FieldsSeq(answer) {
			addrs = append(addrs, netip.MustParseAddr(text))
		}
		return addrs, nil
	}
}

// TestNames: a name is refused if any of its addresses is, and http is only for networks
// that were named.
func TestNames(t *testing.T) {
	t.Parallel()
	named, err := ParseNetworks([]string{"10.1.0.0/16", " fd00::7"})
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		networks    []netip.Prefix
		url, answer string
		ok          bool
	}{
		{nil, "https://shop.example/", "8.8.8.8", true},
		{nil, "https://shop.example/", "8.8.8.8 2606:4700::1111", true},
		{nil, "https://shop.example/", "8.8.8.8 10.0.0.1", false},
		{nil, "https://shop.example/", "::ffff:8.8.8.8", true}, // this is how Go returns an IPv4 address in /etc/hosts
		{nil, "https://shop.example/", "::ffff:127.0.0.1", false},
		{nil, "https://metadata.google.internal/", "169.254.169.254", false},
		{nil, "https://nowhere.example/", "", false},
		{nil, "http://shop.example/", "8.8.8.8", false},
		{named, "http://till.example/", "10.1.2.3", true},
		{named, "https://till.example/", "10.1.2.3", true},
		{named, "http://till.example/", "10.1.2.3 8.8.8.8", false},
		{named, "http://till.example/", "10.2.0.1", false},
		{named, "http://8.8.8.8/", "", false},
		{named, "http://[::ffff:10.1.2.3]/", "::ffff:10.1.2.3", true}, // an address resolves to itself
		{named, "http://[fd00::7]/", "fd00::7", true},
		{named, "http://[fd00::8]/", "", false},
	} {
		n := NewNetworks(test.networks)
		n.resolve = resolver(test.answer)
		if err := n.Check(t.Context(), test.url); (err == nil) != test.ok {
			t.Errorf("%s at %q with %v: got %v, want it accepted: %t", test.url, test.answer, test.networks, err, test.ok)
		}
	}
	for _, wrong := range []string{"", "10.0.0.0/33", "example.com", "fe80::1%eth0", "10.0.0"} {
		if _, err := ParseNetworks([]string{wrong}); err == nil {
			t.Errorf("network %q: got no error", wrong)
		}
	}
}

// TestRebinding: what a name resolved to when it was saved doesn't matter later. The
// name localhost really resolves, to this machine.
func TestRebinding(t *testing.T) {
	t.Parallel()
	port, connections := listen(t)
	n := NewNetworks(nil)
	n.resolve = resolver("8.8.8.8")
	hook := "https://localhost:" + port + "/hook"
	if err := n.Check(t.Context(), hook); err != nil {
		t.Fatalf("saving: %v", err)
	}
	r := NewSender(SenderConfig{Networks: n}).Attempt(t.Context(), due(hook))
	if r.Error != describe(errNotAllowed, 0) || connections.Load() != 0 {
		t.Errorf("got %q and %d connections, want it refused", r.Error, connections.Load())
	}
}

// TestNoProxy: proxies of the environment would connect on our behalf.
func TestNoProxy(t *testing.T) {
	if NewSender(SenderConfig{Networks: NewNetworks(nil)}).transport.Proxy != nil {
		t.Error("the transport has a proxy")
	}
}
