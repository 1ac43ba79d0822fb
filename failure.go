package animalstore

import "time"

// Failure is a request that was answered with an error.
type Failure struct {
	ID         int64   `json:"id"`
	Time       Time    `json:"time"` // of the response
	RequestID  string  `json:"requestId"`
	KeyID      int64   `json:"keyId"`
	Method     string  `json:"method"`
	Route      *string `json:"route"` // pattern of the path, such as "/v1/pets/{petId}"; nil if the path matches none
	Path       *string `json:"path"`  // without the query; nil like Route
	Status     int     `json:"status"`
	Code       Code    `json:"code"`
	Message    string  `json:"message"`
	DurationMs int64   `json:"durationMs"`
}

// FailuresKept is how long failures are kept.
const FailuresKept = 7 * 24 * time.Hour
