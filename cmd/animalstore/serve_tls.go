package main

import "github.com/spf13/cobra"

// tlsFlags adds the flags for HTTPS.
func tlsFlags(cmd *cobra.Command, f *serveFlags) {
	flags := cmd.Flags()
	flags.StringVar(&f.CertFile, "tls-cert", "", "file with the certificate chain, to serve HTTPS; read again when it changes")
	flags.StringVar(&f.KeyFile, "tls-key", "", "file with the private key of the certificate")
	flags.StringSliceVar(&f.Certificates.Domains, "acme-domain", nil, "domains to obtain certificates for, from Let's Encrypt or --acme-directory; accepts the authority's terms")
	flags.StringVar(&f.Certificates.Cache, "acme-cache", "", "directory for these certificates and their keys (default the database's file with .acme at the end)")
	flags.StringVar(&f.Certificates.Directory, "acme-directory", "", "URL of the authority that issues them (default that of Let's Encrypt)")
	flags.StringVar(&f.Certificates.Email, "acme-email", "", "where the authority may report problems")
	flags.StringVar(&f.RedirectListen, "redirect-http", "", "address and port, such as :80, that redirects plain HTTP to HTTPS and answers ACME's HTTP challenges")
	completeFlag(cmd, "tls-cert", completeFiles)
	completeFlag(cmd, "tls-key", completeFiles)
}
