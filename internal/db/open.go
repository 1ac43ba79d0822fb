package db

// OpenReason is why a database can't be opened.
type OpenReason int

const (
	Absent      OpenReason = iota + 1 // there is no store
	Foreign                           // it contains something else
	Served                            // a server is using it
	Unreachable                       // the database server doesn't respond
)

// OpenError means that a database can't be opened and the caller may have meant another
// one. How to specify another one depends on the caller.
type OpenError struct {
	Reason OpenReason
	Text   string
}

func (e *OpenError) Error() string { return e.Text }
