package server

import (
	"errors"
	"fmt"
)

// ExplainStartError names the flag of serve to change if a port is taken or a certificate can't
// be used.
func ExplainStartError(err error) error {
	var taken *ListenError
	var certificate *CertificateError
	switch {
	case errors.As(err, &certificate):
		return explainCertificateError(certificate)
	case !errors.As(err, &taken):
		return err
	case taken.Ops:
		return fmt.Errorf("cannot serve metrics: %w. Choose another address with --ops-listen, or none with --ops-listen \"\"", taken.Err)
	case taken.Redirect:
		return fmt.Errorf("cannot redirect plain HTTP: %w. Choose another address with --redirect-http", taken.Err)
	}
	return fmt.Errorf("cannot serve: %w. Choose another address with --listen", taken.Err)
}

func explainCertificateError(err *CertificateError) error {
	if err.ACME {
		return fmt.Errorf("--acme-cache: %w", err.Err)
	}
	return fmt.Errorf("load the certificate of --tls-cert and --tls-key: %w", err.Err)
}
