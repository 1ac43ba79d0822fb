package strictjson

import (
	"bytes"
	"errors"
	"math"
	"strconv"
)

var (
	errInteger  = errors.New("must be an integer")
	errFraction = errors.New("must be an integer, without a fraction")
	errRange    = errors.New("must be an integer between -9223372036854775808 and 9223372036854775807")
)

// ParseInteger parses a number whose value is an integer, in any JSON notation: 100,
// 1e2 and 100.0 are the same. It's exact, because it never converts to a float, and
// cheap, because it never expands an exponent into more digits than an int64 has.
func ParseInteger(number []byte) (int64, error) {
	if n, err := strconv.ParseInt(string(number), 10, 64); err == nil && number[0] != '+' {
		return n, nil
	}
	digits, rawExponent, hasExponent := number, []byte(nil), false
	if i := bytes.IndexAny(number, "eE"); i >= 0 {
		digits, rawExponent, hasExponent = number[:i], number[i+1:], true
	}
	digits, negative := bytes.CutPrefix(digits, []byte("-"))
	whole, fraction, hasPoint := bytes.Cut(digits, []byte("."))
	if !isDigits(whole) || hasPoint && !isDigits(fraction) || hasExponent && !isExponent(rawExponent) {
		return 0, errInteger
	}
	exponent := 0
	if hasExponent {
		exponent = parseExponent(rawExponent)
	}

	// The value is significant×10^exponent.
	significant := append(append(make([]byte, 0, len(digits)), whole...), fraction...)
	exponent -= len(fraction)
	significant = bytes.TrimLeft(significant, "0")
	if len(significant) == 0 {
		return 0, nil
	}
	trimmed := bytes.TrimRight(significant, "0")
	exponent += len(significant) - len(trimmed)
	if exponent < 0 {
		return 0, errFraction
	}
	return scale(trimmed, exponent, negative)
}

// scale returns digits×10^exponent as an int64. digits has no leading zeros.
func scale(digits []byte, exponent int, negative bool) (int64, error) {
	const maxDigits = 19 // in an int64
	if len(digits)+exponent > maxDigits {
		return 0, errRange
	}
	digits = append(digits, bytes.Repeat([]byte("0"), exponent)...)
	n, err := strconv.ParseUint(string(digits), 10, 64)
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

func isDigits(s []byte) bool {
	for _, c := range s {
		if c < '0' || c > '9' {
			return false
		}
	}
	return len(s) > 0
}

func isExponent(s []byte) bool {
	if len(s) > 0 && (s[0] == '+' || s[0] == '-') {
		s = s[1:]
	}
	return isDigits(s)
}

// parseExponent reads an exponent. One that is larger than the number of digits
// of any text we read is safely beyond the bound.
func parseExponent(s []byte) int {
	const bound = 1 << 30
	n, err := strconv.Atoi(string(s))
	switch {
	case err != nil && s[0] == '-', n < -bound:
		return -bound
	case err != nil, n > bound:
		return bound
	}
	return n
}
