package api

import (
	"bytes"
	"errors"
	"math"
	"strconv"
)

var (
	errFraction = errors.New("must be an integer, without a fraction")
	errRange    = errors.New("must be an integer between -9223372036854775808 and 9223372036854775807")
)

// parseInteger reads a JSON number whose value is an integer, however it is
// written: 100, 1e2 and 100.0 are the same. It is exact, for it never goes
// through a float, and cheap, for no exponent is ever written out in digits.
func parseInteger(number []byte) (int64, error) {
	digits, exponent := number, 0
	if i := bytes.IndexAny(number, "eE"); i >= 0 {
		digits, exponent = number[:i], parseExponent(number[i+1:])
	}
	digits, negative := bytes.CutPrefix(digits, []byte("-"))
	whole, fraction, _ := bytes.Cut(digits, []byte("."))

	// The value is all×10^exponent, with neither leading nor trailing zeros.
	all := append(append(make([]byte, 0, len(digits)), whole...), fraction...)
	exponent -= len(fraction)
	all = bytes.TrimLeft(all, "0")
	if len(all) == 0 {
		return 0, nil
	}
	trimmed := bytes.TrimRight(all, "0")
	exponent += len(all) - len(trimmed)

	if exponent < 0 {
		return 0, errFraction
	}
	const maxDigits = 19 // of an int64
	if len(trimmed)+exponent > maxDigits {
		return 0, errRange
	}
	trimmed = append(trimmed, bytes.Repeat([]byte("0"), exponent)...)
	n, err := strconv.ParseUint(string(trimmed), 10, 64)
	switch {
	case err != nil:
		return 0, errRange
	case negative && n <= -math.MinInt64:
		return -int64(n), nil
	case !negative && n <= math.MaxInt64:
		return int64(n), nil
	}
	return 0, errRange
}

// parseExponent reads the exponent of a JSON number. One beyond any body's
// number of digits is as good as the largest within it.
func parseExponent(s []byte) int {
	const bound = 10 * maxBody
	n, err := strconv.Atoi(string(s))
	switch {
	case err != nil && s[0] == '-', n < -bound:
		return -bound
	case err != nil, n > bound:
		return bound
	}
	return n
}
