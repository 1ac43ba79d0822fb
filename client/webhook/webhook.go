// Package webhook verifies the webhooks that an Animal Store sends. They follow
// Standard Webhooks, so any library for it can verify them too; this package needs only
// the standard library.
package webhook

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// The headers of a webhook.
const (
	HeaderID        = "Webhook-Id"        // the same in every attempt to deliver an event
	HeaderTimestamp = "Webhook-Timestamp" // when the attempt was made, in Unix seconds
	HeaderSignature = "Webhook-Signature" // one or more signatures, separated by spaces
)

// Tolerance is how far a webhook's timestamp may be from the receiver's clock, so that
// a recorded webhook can't be replayed later.
const Tolerance = 5 * time.Minute

// The reasons why a webhook isn't genuine. Distinguish them with errors.Is.
var (
	ErrNoSecret      = errors.New("no secret to verify the webhook with")
	ErrInvalidSecret = errors.New("the secret isn't base64, with or without whsec_ before it")
	ErrMissingHeader = errors.New("the webhook lacks a header")
	ErrInvalidHeader = errors.New("the webhook has an invalid header")
	ErrTooOld        = errors.New("the timestamp of the webhook is too old")
	ErrTooNew        = errors.New("the timestamp of the webhook is in the future")
	ErrNoMatch       = errors.New("no signature of the webhook matches")
)

// Verify checks that a webhook was sent by someone who knows the secret, and within
// [Tolerance] of now. body is the request's body exactly as received, not decoded and
// encoded again. It returns nil if the webhook is genuine.
func Verify(secret string, header http.Header, body []byte) error {
	return Verifier{Secrets: []string{secret}}.Verify(header, body)
}

// Verifier verifies webhooks with several secrets: for a receiver of several webhooks,
// or while an old secret is replaced by a new one.
type Verifier struct {
	Secrets []string         // one of them must match
	Now     func() time.Time // nil: time.Now
}

// Verify is like [Verify] with any of the secrets.
func (v Verifier) Verify(header http.Header, body []byte) error {
	keys, err := v.keys()
	if err != nil {
		return err
	}
	for _, name := range []string{HeaderID, HeaderTimestamp, HeaderSignature} {
		if header.Get(name) == "" {
			return fmt.Errorf("%w: %s", ErrMissingHeader, name)
		}
	}
	timestamp := header.Get(HeaderTimestamp)
	if err := v.checkTime(timestamp); err != nil {
		return err
	}
	for _, key := range keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(header.Get(HeaderID) + "." + timestamp + "."))
		mac.Write(body)
		if hasSignature(header.Get(HeaderSignature), mac.Sum(nil)) {
			return nil
		}
	}
	return ErrNoMatch
}

func (v Verifier) keys() ([][]byte, error) {
	if len(v.Secrets) == 0 {
		return nil, ErrNoSecret
	}
	keys := make([][]byte, len(v.Secrets))
	for i, secret := range v.Secrets {
		key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
		// Anybody can sign with an empty key.
		if err != nil || len(key) == 0 {
			return nil, ErrInvalidSecret
		}
		keys[i] = key
	}
	return keys, nil
}

func (v Verifier) checkTime(timestamp string) error {
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if err != nil {
		return fmt.Errorf("%w: %s isn't a number of seconds", ErrInvalidHeader, HeaderTimestamp)
	}
	now := time.Now
	if v.Now != nil {
		now = v.Now
	}
	at := now()
	switch {
	case seconds < at.Add(-Tolerance).Unix():
		return ErrTooOld
	case seconds > at.Add(Tolerance).Unix():
		return ErrTooNew
	}
	return nil
}

// hasSignature reports whether one of the signatures in a header is want. Signatures of
// other versions are skipped.
func hasSignature(header string, want []byte) bool {
	for signature := range strings.FieldsSeq(header) {
		version, encoded, _ := strings.Cut(signature, ",")
		got, err := base64.StdEncoding.DecodeString(encoded)
		if version == "v1" && err == nil && hmac.Equal(got, want) {
			return true
		}
	}
	return false
}
