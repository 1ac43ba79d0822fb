package server

import "crypto/tls"

// cipherSuites are those of TLS 1.2 that encrypt and authenticate in one step. The
// CBC suites, which Go still offers by default, have a history of padding attacks,
// and every client of the last ten years supports one of these. TLS 1.3 has no
// others.
var cipherSuites = []uint16{
	tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
	tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
	tls.TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
	tls.TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
	tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
}

// hardenTLS returns a copy of a configuration that accepts TLS 1.2 with
// [cipherSuites], and later versions.
func hardenTLS(c *tls.Config) *tls.Config {
	hardened := c.Clone()
	hardened.MinVersion = max(c.MinVersion, tls.VersionTLS12)
	hardened.CipherSuites = cipherSuites
	return hardened
}
