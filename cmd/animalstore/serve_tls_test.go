package main

import (
	"strings"
	"testing"

	"animalstore/internal/certs"
	"animalstore/internal/server"
)

func TestCheckTLS(t *testing.T) {
	files := server.Config{CertFile: "cert.pem", KeyFile: "key.pem", Database: "sqlite:store.db"}
	sqlite := server.Config{Database: "sqlite:store.db"}
	shop := certs.ACME{Domains: []string{"shop.example"}}
	redirect := files
	redirect.RedirectListen = "80"
	for _, test := range []struct {
		name string
		cfg  server.Config
		acme certs.ACME
		want string // part of the error; "" for none
	}{
		{"plain HTTP", sqlite, certs.ACME{}, ""},
		{"files", files, certs.ACME{}, ""},
		{"ACME", sqlite, shop, ""},
		{"no key", server.Config{CertFile: "cert.pem"}, certs.ACME{}, "give both or neither"},
		{"both", files, shop, "exclude each other"},
		{"no domain", sqlite, certs.ACME{Email: "me@shop.example"}, "need --acme-domain"},
		{"nowhere to keep certificates", server.Config{Database: "postgres://db1/store"}, shop, "needs --acme-cache"},
		{"a redirect to nothing", server.Config{RedirectListen: ":80"}, certs.ACME{}, "--redirect-http needs a certificate"},
		{"a redirect from nowhere", redirect, certs.ACME{}, "--redirect-http must be"},
		{"an authority without TLS", sqlite, certs.ACME{Domains: shop.Domains, Directory: "http://ca.example/dir"}, "--acme-directory must be"},
		{"an address", sqlite, certs.ACME{Domains: []string{"192.0.2.1"}}, "--acme-domain: \"192.0.2.1\" is not a full domain name"},
	} {
		err := checkTLS(test.cfg, test.acme)
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.want)
		}
	}
}
