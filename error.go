package animalstore

import (
	"fmt"
	"strings"
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

// NotFound is the error for a resource that doesn't exist. code says which kind of
// resource it is, such as pet_not_found.
func NotFound(code Code) *Error {
	return Errorf(code, "there is no %s with this id", resourceName(code))
}

// NoSuchID is NotFound for an id that isn't valid, and so can't exist. validID says
// what a valid one is.
func NoSuchID(code Code, validID string) *Error {
	return Errorf(code, "there is no such %s: an id is %s", resourceName(code), validID)
}

func resourceName(code Code) string { return strings.TrimSuffix(string(code), "_not_found") }

func (e *Error) Error() string { return string(e.Code) + ": " + e.Message }

// Codes are all codes that a response of the service can have.
var Codes = []Code{
	MalformedJSON, ValidationFailed, InvalidParameter, InvalidCursor, InvalidImage,
	MissingAPIKey, InvalidAPIKey, InsufficientPermission, AddressNotAllowed, KeySuspended,
	PetNotFound, OrderNotFound, CategoryNotFound, KeyNotFound, WebhookNotFound, DeliveryNotFound, PhotoNotFound, RouteNotFound, MethodNotAllowed,
	InvalidTransition, PetNotAvailable, LastAdminKey, WouldLockOut, TooManyWebhooks, TooManyPhotos, EndpointRemoved, EventsExpired, PreconditionFailed,
	PayloadTooLarge, UnsupportedMediaType, IdempotencyKeyReused,
	RateLimitExceeded, DailyQuotaExceeded, KeyBanned, TooManyStreams,
	InternalError, Unavailable, StorageFull, Overloaded, ShuttingDown,
}
