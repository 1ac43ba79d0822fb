package fair

import (
	"context"
	"encoding/binary"
	"math"
)

// A caller identifies whom an operation is for: the id of an API key, or one of
// the values below.

// System identifies background work, and every context without a caller.
const System int64 = 0

// LookupCaller identifies reads made before the key of a request is known. Some
// slots are reserved for these reads: see [Turns]. The caller is derived from
// the secret's hash, because many requests with the same key may look it up at
// once.
func LookupCaller(hash [32]byte) int64 {
	return int64(binary.LittleEndian.Uint64(hash[:]) | 1<<63)
}

// LookupCallerOf identifies other reads made before a key is authorized.
func LookupCallerOf(keyID int64) int64 { return -keyID }

// LookupSystem identifies the service's own reads for checking keys.
const LookupSystem int64 = math.MinInt64

func isLookup(caller int64) bool { return caller < 0 }

type callerKey struct{}

// WithCaller returns a context for operations of this caller.
func WithCaller(ctx context.Context, caller int64) context.Context {
	return context.WithValue(ctx, callerKey{}, caller)
}

// CallerOf returns the caller of a context.
func CallerOf(ctx context.Context) int64 {
	caller, _ := ctx.Value(callerKey{}).(int64)
	return caller
}
