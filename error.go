package animalstore

import (
	"fmt"
	"slices"
)

// Code is the machine-readable part of an error. Codes are part of the public
// interface: new ones may be added, existing ones never change.
type Code string

const (
	MalformedJSON          Code = "malformed_json"
	ValidationFailed       Code = "validation_failed"
	InvalidParameter       Code = "invalid_parameter"
	InvalidCursor          Code = "invalid_cursor"
	InvalidImage           Code = "invalid_image"
	MissingAPIKey          Code = "missing_api_key"
	InvalidAPIKey          Code = "invalid_api_key"
	InsufficientPermission Code = "insufficient_permission"
	AddressNotAllowed      Code = "address_not_allowed"
	KeySuspended           Code = "key_suspended"
	PetNotFound            Code = "pet_not_found"
	OrderNotFound          Code = "order_not_found"
	CategoryNotFound       Code = "category_not_found"
	KeyNotFound            Code = "key_not_found"
	WebhookNotFound        Code = "webhook_not_found"
	DeliveryNotFound       Code = "delivery_not_found"
	PhotoNotFound          Code = "photo_not_found"
	RouteNotFound          Code = "route_not_found"
	MethodNotAllowed       Code = "method_not_allowed"
	InvalidTransition      Code = "invalid_transition"
	PetNotAvailable        Code = "pet_not_available"
	LastAdminKey           Code = "last_admin_key"
	WouldLockOut           Code = "would_lock_out"
	TooManyWebhooks        Code = "too_many_webhooks"
	TooManyPhotos          Code = "too_many_photos"
	EndpointRemoved        Code = "endpoint_removed"
	EventsExpired          Code = "events_expired"
	PreconditionFailed     Code = "precondition_failed"
	PayloadTooLarge        Code = "payload_too_large"
	UnsupportedMediaType   Code = "unsupported_media_type"
	IdempotencyKeyReused   Code = "idempotency_key_reused"
	RateLimitExceeded      Code = "rate_limit_exceeded"
	DailyQuotaExceeded     Code = "daily_quota_exceeded"
	KeyBanned              Code = "key_banned"
	TooManyStreams         Code = "too_many_streams"
	InternalError          Code = "internal_error"
	Unavailable            Code = "unavailable"
	StorageFull            Code = "storage_full"
	Overloaded             Code = "overloaded"
	ShuttingDown           Code = "shutting_down"
)

// Error is an error that callers may see: its message says what is wrong and how
// to fix it, and nothing about the server's internals. It never repeats a value of the
// request, because messages are stored with [Failure].
type Error struct {
	Code    Code
	Message string
}

// Errorf returns an *Error with a formatted message.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// codesByStatus are all codes, by the HTTP status of their responses.
var codesByStatus = []struct {
	status int
	codes  []Code
}{
	{400, []Code{MalformedJSON, ValidationFailed, InvalidParameter, InvalidCursor, InvalidImage}},
	{401, []Code{MissingAPIKey, InvalidAPIKey}},
	{403, []Code{InsufficientPermission, AddressNotAllowed, KeySuspended}},
	{404, []Code{PetNotFound, OrderNotFound, CategoryNotFound, KeyNotFound}},
	{404, []Code{WebhookNotFound, DeliveryNotFound, PhotoNotFound, RouteNotFound}},
	{405, []Code{MethodNotAllowed}},
	{409, []Code{InvalidTransition, PetNotAvailable, LastAdminKey, WouldLockOut, TooManyWebhooks, TooManyPhotos}},
	{410, []Code{EndpointRemoved, EventsExpired}},
	{412, []Code{PreconditionFailed}},
	{413, []Code{PayloadTooLarge}},
	{415, []Code{UnsupportedMediaType}},
	{422, []Code{IdempotencyKeyReused}},
	{429, []Code{RateLimitExceeded, DailyQuotaExceeded, KeyBanned, TooManyStreams}},
	{500, []Code{InternalError}},
	{503, []Code{Unavailable, StorageFull, Overloaded, ShuttingDown}},
}

// Codes are all codes that a response of the service can have.
var Codes = func() (all []Code) {
	for _, c := range codesByStatus {
		all = append(all, c.codes...)
	}
	return all
}()

// Status is the HTTP status of responses with this code, 0 if this version doesn't know it.
func (c Code) Status() int {
	for _, of := range codesByStatus {
		if slices.Contains(of.codes, c) {
			return of.status
		}
	}
	return 0
}
