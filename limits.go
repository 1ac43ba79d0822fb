package animalstore

// LimitStatus is how much of its plan a key has used.
type LimitStatus struct {
	Plan    Plan         `json:"plan"`
	Minute  LimitWindow  `json:"minute"`
	Day     LimitWindow  `json:"day"`
	Strikes LimitStrikes `json:"strikes"`
	Ban     LimitBan     `json:"ban"`
}

// LimitWindow is how much of a window a key has used.
type LimitWindow struct {
	Limit     int64 `json:"limit"`
	Remaining int64 `json:"remaining"`
	Reset     Time  `json:"reset"` // when the window ends
}

// LimitStrikes are requests that were sent although the service had said to wait.
type LimitStrikes struct {
	Count     int64 `json:"count"`     // in the last ten minutes
	Threshold int64 `json:"threshold"` // the number that leads to a ban
}

// LimitBan is the state of a key's ban.
type LimitBan struct {
	Active bool  `json:"active"`
	Until  Time  `json:"until"` // zero, null in JSON, unless active
	Level  int64 `json:"level"` // number of consecutive bans; each makes the next one longer
}
