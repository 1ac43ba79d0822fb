package animalstore

// Status is the state of a server, for its operator.
type Status struct {
	Version       string          `json:"version"`
	Deployment    Environment     `json:"deployment"`
	Engine        string          `json:"engine"` // sqlite or postgres
	SizeBytes     int64           `json:"sizeBytes"`
	UptimeSeconds int64           `json:"uptimeSeconds"`
	WriteQueue    int64           `json:"writeQueue"`   // operations that wait for the database
	CacheHits     int64           `json:"cacheHits"`    // pages served from memory since the start
	CacheMisses   int64           `json:"cacheMisses"`  // pages that had to be read
	LastBackup    *Backup         `json:"lastBackup"`   // nil: this server has made none
	RemoteBackup  *RemoteBackup   `json:"remoteBackup"` // nil: this server makes none on another machine
	Requests      []RequestMinute `json:"requests"`     // the last hour, oldest first
}

// Backup is a scheduled copy of the store.
type Backup struct {
	At        Time  `json:"at"` // when it began, the instant it shows
	SizeBytes int64 `json:"sizeBytes"`
	Failures  int64 `json:"failures"` // failed attempts since the server started
}

// RemoteBackup is the newest scheduled copy of the store on another machine, and
// whether the last attempt to make one failed.
type RemoteBackup struct {
	At        Time  `json:"at"` // when it began, or never
	SizeBytes int64 `json:"sizeBytes"`
	Failures  int64 `json:"failures"` // failed attempts since the server started
	Failing   bool  `json:"failing"`  // the last attempt failed
}

// RequestMinute counts the API requests that a server handled in one minute.
type RequestMinute struct {
	Minute   Time  `json:"minute"`   // when it begins
	Served   int64 `json:"served"`   // got 2xx or 3xx
	Rejected int64 `json:"rejected"` // 4xx, except 429
	Limited  int64 `json:"limited"`  // 429
	Failed   int64 `json:"failed"`   // 5xx
}
