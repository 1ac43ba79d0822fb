package client

// WithRandom replaces the randomness of the backoff with f, whose values are in
// [0, 1).
func WithRandom(f func() float64) Option {
	return func(s *settings) { s.random = f }
}
