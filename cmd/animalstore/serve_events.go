package main

import (
	"fmt"
	"time"

	"animalstore/internal/terminal"
)

// parseRetention reads how long to keep events. It returns a negative duration for
// forever.
func parseRetention(s string) (time.Duration, error) {
	if s == "0" {
		return -1, nil
	}
	kept, err := terminal.ParseDuration(s)
	if err != nil || kept < time.Minute {
		return 0, fmt.Errorf("--events-retention must be a duration of at least 1m, such as 30d or 12h, or 0 to keep events forever, not %q", s)
	}
	return kept, nil
}
