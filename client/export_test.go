package client

// WithRandom replaces chance in backoff by a function with values in [0, 1).
func WithRandom(f func() float64) Option {
	return func(s *settings) { s.random = f }
}

// MaxAnswer is the most that is read of an answer.
const MaxAnswer = maxAnswer
