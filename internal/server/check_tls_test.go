package server_test

import (
	"strings"
	"testing"

	"animalstore/internal/server"
)

func TestCheckTLS(t *testing.T) {
	files := server.Config{CertFile: "cert.pem", KeyFile: "key.pem", Database: "sqlite:store.db"}
	sqlite := server.Config{Database: "sqlite:store.db"}
	shop := server.ACME{Domains: []string{"shop.example"}}
	domain := func(name string) server.ACME { return server.ACME{Domains: []string{name}} }
	redirect := files
	redirect.RedirectListen = "80"
	for _, test := range []struct {
		name string
		cfg  server.Config
		acme server.ACME
		want string // part of the error; "" for none
	}{
		{"plain HTTP", sqlite, server.ACME{}, ""},
		{"files", files, server.ACME{}, ""},
		{"ACME", sqlite, shop, ""},
		{"no key", server.Config{CertFile: "cert.pem"}, server.ACME{}, "give both or neither"},
		{"both", files, shop, "exclude each other"},
		{"no domain", sqlite, server.ACME{Email: "me@shop.example"}, "need --acme-domain"},
		{"nowhere to keep certificates", server.Config{Database: "postgres://db1/store"}, shop, "needs --acme-cache"},
		{"a redirect to nothing", server.Config{RedirectListen: ":80"}, server.ACME{}, "--redirect-http needs a certificate"},
		{"a redirect from nowhere", redirect, server.ACME{}, "--redirect-http must be"},
		{"an authority without TLS", sqlite, server.ACME{Domains: shop.Domains, Directory: "http://ca.example/dir"}, "--acme-directory must be"},
		{"an address", sqlite, domain("192.0.2.1"), "not a full domain name"},
		{"a wildcard", sqlite, domain("*.shop.example"), "not a full domain name"},
		{"a local name", sqlite, domain("shop"), "not a full domain name"},
		{"not ASCII", sqlite, domain("füchse.example"), "begins with xn--"},
	} {
		err := server.CheckTLS(test.cfg, test.acme)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
	}
}
